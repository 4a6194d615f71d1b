package check

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"toll/lab/result"
)

// The schema of toll.result/v1. A test makes it from the types of lab/result, so the two cannot part.
//
//go:embed result.schema.json
var schemaText []byte

func compile() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaText))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("result.schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("result.schema.json")
}

// Document checks a document's text: the schema, the identifiers, the rules, and that its verdict is what they give. An
// error means that the text is no usable document; violations mean that it is one that must not be published.
func Document(data []byte) (*result.Document, []Violation, error) {
	d, err := result.Decode(data)
	if err != nil {
		return nil, nil, err
	}
	if err := schema(data); err != nil {
		return nil, nil, err
	}
	if err := Identifiers(d); err != nil {
		return nil, nil, err
	}
	found := Rules(d)
	if want := Verdict(d); want.Publishable != d.Verdict.Publishable || !slices.Equal(want.Reasons, d.Verdict.Reasons) {
		found = append(found, Violation{Text: fmt.Sprintf("the document's verdict is publishable %v %q, its figures give %v %q",
			d.Verdict.Publishable, d.Verdict.Reasons, want.Publishable, want.Reasons)})
	}
	return d, found, nil
}

func schema(data []byte) error {
	s, err := compile()
	if err != nil {
		return fmt.Errorf("the embedded schema: %w", err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	err = s.Validate(v)
	var ve *jsonschema.ValidationError
	if errors.As(err, &ve) {
		return fmt.Errorf("schema: %s", deepest(ve))
	}
	return err
}

// deepest returns the first cause that has no cause of its own: the place and what was expected there.
func deepest(e *jsonschema.ValidationError) string {
	for len(e.Causes) > 0 {
		e = e.Causes[0]
	}
	text := e.Error()
	return strings.TrimSpace(text[strings.LastIndex(text, "\n")+1:])
}

// A vocabulary is the stable identifiers of a benchmark: its cases, contenders and phases.
type vocabulary struct {
	cases      *regexp.Regexp
	contenders []string
	phases     []string
}

// vocabularies holds the names of the design's §5. A contender from a manifest has its own name and is not in the list.
func vocabularies() map[string]vocabulary {
	pattern := func(s string) *regexp.Regexp { return regexp.MustCompile("^(" + s + ")$") }
	words := strings.Fields
	return map[string]vocabulary{
		"transport": {
			pattern(`(call|cold)/(0B|32B|4KiB|64KiB)|result/(1KiB|16KiB|256KiB|1MiB)|read/empty|session/abandoned|tools_list/[1-9][0-9]*`),
			words("rest rest-raw rest-fresh rest-raw-server rest-h2c opcall opcall-raw zap-http zap-http-again zap-http-unix zap-http-tls zap-rpc mcp mcp-nethttp mcp-raw mcp-stateful mcp-sse mcp-stdio go-sdk go-sdk-stateful mcp-go grpc connect floor null"),
			words("tcp unix"),
		},
		"gateway": {pattern(`echo|empty(/fresh)?|fib/(10|20|30)|work/[0-9]+(us|ms)`), words("toll toll-plain toll-nethttp toll-remote nethttp socket floor null"), words("plain mtls below above")},
		"spawn": {
			pattern(`spawn/(1|16|256)(@[1-9][0-9]*k)?|ask(@[1-9][0-9]*k)?`),
			words("toll-goroutine toll-inline process-warm process-cold no-op floor suture null"), words("inproc http http-new"),
		},
		"bus": {
			pattern(`rtt/(128B|4KiB)|one-way/128B`),
			words("inproc direct direct-mailbox routed nats zmtp zmtp-proxy libzmq nats-go grpc floor null"), nil,
		},
		"receipt": {
			pattern(`(receipt|accept)/(volatile|durable)`),
			words("sync sync-fast batch sidecar inproc-async noble-sync noble-async node-native floor null"), words("library socket http"),
		},
		"group": {
			pattern(`create_group/(1|8|32|1000)|join_welcome(/(32|1000))?|send_app_message(/first)?|ingest_app_message|(ingest_)?commit/(8|1000)(/populated)?`),
			words("toll toll-fast toll-fast-2 toll-voi floor-std floor-fast openmls openmls-wasm ts-mls mdk null"), words("engine engine+store engine+envelope"),
		},
		"tools": {
			pattern(`tmdevlab/v[12]`),
			words("toll toll-stateless toll-gateway go-sdk-1-2-tools go-sdk-1-2-tools-stateless fastmcp ts-sdk rmcp spring-ai floor null"), words("tcp"),
		},
		// load is what `toll load` writes: anybody's URLs and commands.
		result.Load: {pattern(`request|session`), nil, words("tcp unix tls")},
		// contender is what `toll contender run` writes: anybody's systems among themselves.
		"contender": {pattern(`[a-z0-9_]+(/[0-9A-Za-z]+)?`), words("null floor"), nil},
	}
}

// Identifiers returns the first identifier of d that is not in the design's list. Contenders that came through a manifest
// (they have a command digest that the plan's contenders lack) keep their own names.
func Identifiers(d *result.Document) error {
	all := vocabularies()
	v, ok := all[d.Benchmark]
	if !ok {
		return fmt.Errorf("benchmark %q is not one of transport, gateway, spawn, bus, receipt, group, load, contender", d.Benchmark)
	}
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.Kind != result.Measured {
			continue
		}
		if !v.cases.MatchString(r.Case) {
			return fmt.Errorf("row %d: case %q is not one of the benchmark %s", i, r.Case, d.Benchmark)
		}
		if v.phases != nil && !slices.Contains(v.phases, r.Phase) {
			return fmt.Errorf("row %d: phase %q is not one of %s", i, r.Phase, strings.Join(v.phases, ", "))
		}
		ours := len(d.Plan.With) == 0 || slices.Contains(d.Plan.Contenders, r.Contender.Name)
		if ours && d.Benchmark != "contender" && v.contenders != nil && !slices.Contains(v.contenders, r.Contender.Name) {
			return fmt.Errorf("row %d: contender %q is not one of the benchmark %s, and no manifest brought it", i, r.Contender.Name, d.Benchmark)
		}
	}
	return nil
}
