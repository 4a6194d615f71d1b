package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Schema is the identifier that a plan file's first key carries.
const Schema = "toll.plan/v1"

// The orders in which a block calls its contenders, and the models of arrival.
const (
	Shuffled = "shuffled"
	Fixed    = "fixed"
	Closed   = "closed"
	Open     = "open"
)

// Whether the lab and its contenders are held to processors, or run on any that the system chooses.
const (
	Held = "held"
	Any  = "any"
)

// Poll has processors with nothing to do look for work; [Any] leaves to the system what they do.
const Poll = "poll"

// Whether each contender has a server process of its own.
const (
	Separate = "separate"
	Shared   = "shared"
)

// A Plan says what to measure and how.
type Plan struct {
	Schema     string   `yaml:"schema" json:"schema"`
	Benchmark  string   `yaml:"benchmark" json:"benchmark"`
	Cases      []string `yaml:"cases" json:"cases"`
	Phases     []string `yaml:"phases" json:"phases"`
	Contenders []string `yaml:"contenders" json:"contenders"`         // names the benchmark knows
	With       []string `yaml:"with,omitempty" json:"with,omitempty"` // manifests of outside contenders
	Baseline   string   `yaml:"baseline" json:"baseline"`
	Processes  string   `yaml:"processes,omitempty" json:"processes,omitempty"` // separate when empty; shared only to reproduce a published method
	Settings   `yaml:",inline"`
	Full       *Full      `yaml:"full,omitempty" json:"-"`                  // what --full changes
	Quick      *Full      `yaml:"quick,omitempty" json:"-"`                 // what --quick changes, in a plan whose own method takes long; deviations from it
	Claims     *Settings  `yaml:"claims,omitempty" json:"claims,omitempty"` // the method claimed, where it is another's
	Ladder     []Step     `yaml:"ladder,omitempty" json:"ladder,omitempty"` // what changes from contender to contender
	Thresholds Thresholds `yaml:"thresholds,omitempty" json:"thresholds,omitempty"`
}

// A Step is one change on the way from one contender to another: the client, the framing. Steps that follow one another
// are an attribution ladder.
type Step struct {
	Step string `yaml:"step" json:"step"`
	From string `yaml:"from" json:"from"`
	To   string `yaml:"to" json:"to"`
}

// Full is what --full, or --quick, changes.
type Full struct {
	Cases    []string `yaml:"cases,omitempty"`
	Settings `yaml:",inline"`
}

// AtFull returns the plan as --full runs it.
func (p Plan) AtFull() Plan { return p.at(p.Full) }

// AtQuick returns the plan as --quick runs it: as it stands where it says nothing of that.
func (p Plan) AtQuick() Plan { return p.at(p.Quick) }

func (p Plan) at(f *Full) Plan {
	if f == nil {
		return p
	}
	if f.Cases != nil {
		p.Cases = f.Cases
	}
	p.Settings = p.Settings.With(&f.Settings)
	return p
}

// Settings are the method's numbers. In Full and Claims only what is given counts; the rest is the plan's own.
type Settings struct {
	Model       string   `yaml:"model,omitempty" json:"model,omitempty"`             // closed | open
	Order       string   `yaml:"order,omitempty" json:"order,omitempty"`             // shuffled | fixed
	Concurrency []int    `yaml:"concurrency,omitempty" json:"concurrency,omitempty"` // VUs; a row for each
	Rounds      int      `yaml:"rounds,omitempty" json:"rounds,omitempty"`           // independent repeats, contenders started anew
	Blocks      int      `yaml:"blocks,omitempty" json:"blocks,omitempty"`           // over all rounds together
	Calls       int      `yaml:"calls,omitempty" json:"calls,omitempty"`             // of a contender in a block
	CallsEach   int      `yaml:"calls_each,omitempty" json:"calls_each,omitempty"`   // of each VU in a block at least, however few calls that would be
	Duration    Duration `yaml:"duration,omitempty" json:"duration,omitempty"`       // of a contender's turn in a block, instead of calls
	Warmup      int      `yaml:"warmup,omitempty" json:"warmup,omitempty"`           // calls of a contender before a round's first block
	Timeout     Duration `yaml:"timeout,omitempty" json:"timeout,omitempty"`         // of one call

	Rate       float64            `yaml:"rate,omitempty" json:"rate,omitempty"`             // open model: arrivals a second, for the duration
	Stages     []Stage            `yaml:"stages,omitempty" json:"stages,omitempty"`         // of a contender's turn in a block, instead of a duration
	Shares     map[string]float64 `yaml:"shares,omitempty" json:"shares,omitempty"`         // open model: by phase, the rate as a share of the baseline's capacity, instead of a rate
	Arrivals   string             `yaml:"arrivals,omitempty" json:"arrivals,omitempty"`     // open model: even (also when empty) | poisson
	InFlight   int                `yaml:"in_flight,omitempty" json:"in_flight,omitempty"`   // open model: most calls in flight; 0 = max(1000, 2 s × rate)
	Think      Duration           `yaml:"think,omitempty" json:"think,omitempty"`           // closed model: pause of a VU between two calls
	CallsOnly  bool               `yaml:"calls_only,omitempty" json:"calls_only,omitempty"` // a turn ends after calls, the duration bounds it
	Limits     Quota              `yaml:"limits,omitempty" json:"limits,omitzero"`          // on each contender's process tree
	Hop        string             `yaml:"hop,omitempty" json:"hop,omitempty"`               // loopback (also when empty) | netns | netns:5ms
	Processors string             `yaml:"processors,omitempty" json:"processors,omitempty"` // any (also when empty) | held: with one caller all on one, else the client on half of them and the contenders on the rest
	Idle       string             `yaml:"idle,omitempty" json:"idle,omitempty"`             // of this machine's processors with nothing to do: any (also when empty), as the system has it | poll: they do not sleep

	Backends  map[string]Quota `yaml:"backends,omitempty" json:"backends,omitempty"`   // by name: limits on what stands behind each contender; none where it is not named
	Semantics string           `yaml:"semantics,omitempty" json:"semantics,omitempty"` // strict (also when empty) | published: a check of a reply's content that fails is counted and fails no call

	WarmupTime Duration `yaml:"warmup_time,omitempty" json:"warmup_time,omitempty"` // warm-up under the plan's own load, instead of warmup calls

	// Knee, such as p99<5ms, makes each block a search for the highest rate that holds the bound: by stretches of the
	// duration, of which the first has the plan's rate.
	Knee string `yaml:"knee,omitempty" json:"knee,omitempty"`
}

// The ways in which an open model's arrivals are spread.
const (
	Even    = "even"
	Poisson = "poisson"
)

// Which replies fail a call.
const (
	Strict          = "strict"    // every check of it
	PublishedChecks = "published" // its status, as in the published method; failed checks of its content are only counted
)

// Shape returns the stages of one turn: the plan's own, or its rate or concurrency held for its duration.
func (s Settings) Shape(concurrency int) []Stage {
	switch {
	case len(s.Stages) > 0:
		return s.Stages
	case s.Model == Open:
		return Hold(s.Rate, time.Duration(s.Duration))
	}
	return Hold(float64(concurrency), time.Duration(s.Duration))
}

// Timed reports whether a contender's turn is a time under load, not a number of calls.
func (s Settings) Timed() bool { return s.Duration > 0 || len(s.Stages) > 0 }

// CallsAt returns how many calls a contender makes in a block with so many VUs.
func (s Settings) CallsAt(concurrency int) int { return max(s.Calls, s.CallsEach*concurrency) }

// MostInFlight returns the bound of an open model's calls in flight.
func (s Settings) MostInFlight() int {
	if s.InFlight > 0 {
		return s.InFlight
	}
	return max(1000, int(2*Peak(s.Shape(0))))
}

// A Duration is written like 250ms or 10s.
type Duration time.Duration

// UnmarshalYAML parses d; the error carries its position.
func (d *Duration) UnmarshalYAML(n ast.Node) error {
	text := n.GetToken().Value
	v, err := time.ParseDuration(text)
	if err != nil {
		return &yaml.SyntaxError{Token: n.GetToken(), Message: fmt.Sprintf("%q is not a duration such as 250ms or 10s", text)}
	}
	*d = Duration(v)
	return nil
}

// UnmarshalText parses d from a JSON string.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// MarshalText prints d.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Default bounds of a plan; a plan that asks for more is refused, because one typing error must not run for a week.
const (
	maxRounds      = 1000
	maxBlocks      = 100_000
	maxCalls       = 10_000_000
	maxConcurrency = 10_000
	maxDuration    = 24 * time.Hour
)

// Load reads and checks a plan file. A file that can't be used is a *SyntaxError.
func Load(file string) (Plan, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	return Parse(file, data)
}

// Parse reads and checks a plan.
func Parse(file string, data []byte) (Plan, error) {
	var p Plan
	if err := Unmarshal(file, data, &p); err != nil {
		return Plan{}, err
	}
	p.setDefaults()
	if path, msg := p.check(); msg != "" {
		return Plan{}, ErrorAt(file, data, path, msg)
	}
	return p, nil
}

func (p *Plan) setDefaults() {
	p.Settings = Settings{
		Model: Closed, Order: Shuffled, Concurrency: []int{1}, Rounds: 5, Blocks: 20, Calls: 100, Warmup: 300,
		Timeout: Duration(5 * time.Second),
	}.With(&p.Settings)
}

// With returns s with what o gives in place of its own.
func (s Settings) With(o *Settings) Settings {
	if o == nil {
		return s
	}
	if o.Model != "" {
		s.Model = o.Model
	}
	if o.Order != "" {
		s.Order = o.Order
	}
	if o.Concurrency != nil {
		s.Concurrency = o.Concurrency
	}
	for _, f := range []struct{ to, from *int }{
		{&s.Rounds, &o.Rounds}, {&s.Blocks, &o.Blocks}, {&s.Calls, &o.Calls}, {&s.CallsEach, &o.CallsEach}, {&s.Warmup, &o.Warmup},
	} {
		if *f.from != 0 {
			*f.to = *f.from
		}
	}
	if o.Duration != 0 {
		s.Duration = o.Duration
	}
	if o.Timeout != 0 {
		s.Timeout = o.Timeout
	}
	if o.Limits.CPUs != 0 {
		s.Limits.CPUs = o.Limits.CPUs
	}
	if o.Limits.Memory != "" {
		s.Limits.Memory = o.Limits.Memory
	}
	if o.Hop != "" {
		s.Hop = o.Hop
	}
	if o.Processors != "" {
		s.Processors = o.Processors
	}
	if o.Idle != "" {
		s.Idle = o.Idle
	}
	if o.Backends != nil {
		s.Backends = o.Backends
	}
	if o.Semantics != "" {
		s.Semantics = o.Semantics
	}
	return s.withLoad(o)
}

// A Quota is what a contender's process tree may use; what is zero is not limited.
type Quota struct {
	CPUs   float64 `yaml:"cpus,omitempty" json:"cpus,omitempty"`     // cores' worth of CPU time per second
	Memory string  `yaml:"memory,omitempty" json:"memory,omitempty"` // such as 512MiB or 1GiB
}

// String returns what people write: 1 CPU, 1GiB.
func (l Quota) String() string {
	var out []string
	if l.CPUs > 0 {
		out = append(out, fmt.Sprintf("%v CPU", l.CPUs))
	}
	if l.Memory != "" {
		out = append(out, l.Memory)
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ", ")
}

// check returns the YAML path and the sentence of the first thing that is wrong.
func (p *Plan) check() (path, msg string) {
	switch {
	case p.Schema != Schema:
		return "$.schema", fmt.Sprintf("schema is %q; expected %s", p.Schema, Schema)
	case p.Benchmark == "":
		return "$", "benchmark is missing; expected its name"
	case len(p.Cases) == 0:
		return "$", "cases is missing; expected at least one, such as call/32B"
	case len(p.Contenders) == 0:
		return "$", "contenders is missing; expected at least the baseline"
	case !slices.Contains(p.Contenders, p.Baseline):
		return "$.baseline", fmt.Sprintf("baseline %q is not among the contenders %s", p.Baseline, strings.Join(p.Contenders, ", "))
	}
	if msg := p.checkShares(); msg != "" {
		return "$.shares", msg
	}
	if p.Processes != "" && p.Processes != Separate && p.Processes != Shared {
		return "$.processes", fmt.Sprintf("processes is %q; expected separate or shared", p.Processes)
	}
	for _, list := range []struct {
		name  string
		items []string
	}{{"cases", p.Cases}, {"phases", p.Phases}, {"contenders", p.Contenders}, {"with", p.With}} {
		for i, item := range list.items {
			if item == "" {
				return fmt.Sprintf("$.%s[%d]", list.name, i), list.name + " holds an empty name; a contender called null is written \"null\""
			}
			if slices.Contains(list.items[:i], item) {
				return fmt.Sprintf("$.%s[%d]", list.name, i), fmt.Sprintf("%s: %q stands twice", list.name, item)
			}
		}
	}
	for i, s := range p.Ladder {
		if s.Step == "" || !slices.Contains(p.Contenders, s.From) || !slices.Contains(p.Contenders, s.To) {
			return fmt.Sprintf("$.ladder[%d]", i), fmt.Sprintf("ladder: step %q from %q to %q; expected a name and two of the contenders", s.Step, s.From, s.To)
		}
	}
	for i, t := range p.Thresholds {
		if _, err := ParseThreshold(t); err != nil {
			return fmt.Sprintf("$.thresholds[%d]", i), err.Error()
		}
	}
	full, quick := p.AtFull().Settings, p.AtQuick().Settings
	for _, part := range []struct {
		prefix string
		s      *Settings
	}{{"$", &p.Settings}, {"$.full", &full}, {"$.quick", &quick}, {"$.claims", p.Claims}} {
		if part.s == nil {
			continue
		}
		if field, msg := p.Settings.With(part.s).check(); msg != "" {
			return part.prefix + "." + field, msg
		}
	}
	return "", ""
}

func (s Settings) check() (field, msg string) {
	if s.Model != Closed && s.Model != Open {
		return "model", fmt.Sprintf("model is %q; expected closed or open", s.Model)
	}
	if field, msg = s.checkLoad(); msg != "" {
		return field, msg
	}
	if s.Semantics != "" && s.Semantics != Strict && s.Semantics != PublishedChecks {
		return "semantics", fmt.Sprintf("semantics is %q; expected strict or published", s.Semantics)
	}
	if s.Order != Shuffled && s.Order != Fixed {
		return "order", fmt.Sprintf("order is %q; expected shuffled or fixed", s.Order)
	}
	if s.Processors != "" && s.Processors != Held && s.Processors != Any {
		return "processors", fmt.Sprintf("processors is %q; expected held or any", s.Processors)
	}
	if s.Idle != "" && s.Idle != Poll && s.Idle != Any {
		return "idle", fmt.Sprintf("idle is %q; expected poll or any", s.Idle)
	}
	if len(s.Concurrency) == 0 {
		return "concurrency", "concurrency is empty; expected at least one number of VUs"
	}
	for i, c := range s.Concurrency {
		if c < 1 || c > maxConcurrency {
			return fmt.Sprintf("concurrency[%d]", i), fmt.Sprintf("concurrency is %d; expected 1 to %d", c, maxConcurrency)
		}
	}
	for _, f := range []struct {
		name     string
		v, least int
		most     int
	}{
		{"rounds", s.Rounds, 1, maxRounds},
		{"blocks", s.Blocks, 1, maxBlocks},
		{"calls", s.Calls, 1, maxCalls},
		{"calls_each", s.CallsEach, 0, maxCalls},
		{"warmup", s.Warmup, 1, maxCalls},
	} {
		if f.v < f.least || f.v > f.most {
			return f.name, fmt.Sprintf("%s is %d; expected %d to %d", f.name, f.v, f.least, f.most)
		}
	}
	if s.Blocks < s.Rounds {
		return "blocks", fmt.Sprintf("%d blocks can't be dealt over %d rounds; expected at least one a round", s.Blocks, s.Rounds)
	}
	for _, f := range []struct {
		name string
		v    Duration
	}{{"duration", s.Duration}, {"timeout", s.Timeout}, {"think", s.Think}, {"warmup_time", s.WarmupTime}} {
		if f.v < 0 || time.Duration(f.v) > maxDuration {
			return f.name, fmt.Sprintf("%s is %v; expected more than 0 and at most %v", f.name, time.Duration(f.v), maxDuration)
		}
	}
	return "", ""
}

// BlocksOf returns how many of the plan's blocks round r (from 0) holds: as even as can be, earlier rounds first.
func (s Settings) BlocksOf(r int) int {
	n := s.Blocks / s.Rounds
	if r < s.Blocks%s.Rounds {
		n++
	}
	return n
}

// Digest returns the SHA-256 of the plan's canonical JSON, in hex.
func (p Plan) Digest() string {
	data, err := json.Marshal(p)
	if err != nil {
		panic("a plan that does not marshal: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
