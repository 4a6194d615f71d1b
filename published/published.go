// Package published holds other people's benchmark tables: embedded, read-only and checked against a digest, each with its
// source, date, method and known errata. It computes nothing: no figure in it is converted, averaged or divided, and none
// of ours stands beside them here.
package published

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

//go:embed *.json
var files embed.FS

// A Table is one published table as its authors printed it. The caller owns it: every Load decodes a fresh one.
type Table struct {
	Name    string            `json:"name"`              // what Load takes
	Title   string            `json:"title"`             // in our words
	Source  string            `json:"source"`            // authors, repository and commit, or page
	Date    string            `json:"date"`              // YYYY-MM or YYYY-MM-DD
	Machine string            `json:"machine"`           // as stated by the authors
	Method  map[string]string `json:"method"`            // how they measured, a fact per key
	Unit    string            `json:"unit"`              // of Min and P50
	Load    *Shape            `json:"load,omitempty"`    // what its authors state of how it was called, in figures
	Repeats []string          `json:"repeats,omitempty"` // tables of the same code and method, of another day or machine
	Claims  []Claim           `json:"claims,omitempty"`  // what its authors conclude
	Rows    []Row             `json:"rows"`              // in published order
	Errata  []string          `json:"errata"`            // what the figures cannot mean, a sentence each
	SHA256  string            `json:"-"`                 // of the embedded text, lower-case hex
}

// A Row is one line of a table. A figure that its authors did not print is zero or absent.
type Row struct {
	Label     string             `json:"label"`             // as printed
	Contender string             `json:"contender"`         // the identifier of the same thing in our results, or empty
	Phase     string             `json:"phase"`             // tcp, unix, or empty
	Min       [2]float64         `json:"min_ms"`            // lowest and highest over the samples, in Table.Unit
	P50       [2]float64         `json:"p50_ms"`            // lowest and highest over the samples, in Table.Unit
	Ratios    []float64          `json:"ratio_p50"`         // p50 over their baseline's, one per sample; dimensionless
	Figures   map[string]float64 `json:"figures,omitempty"` // any other column; the key ends in its unit (avg_ms, rps)

	Case   string                        `json:"case,omitempty"`   // what was called, where the table has several: the identifier of the same operation in our results, if there is one; rows of one case and phase are compared
	Quoted string                        `json:"quoted,omitempty"` // the table that has this row first, where its authors print somebody else's figures beside their own
	Load   *Shape                        `json:"load,omitempty"`   // of a row that was called otherwise than the rest
	Parts  map[string]map[string]float64 `json:"parts,omitempty"`  // figures of shares of the load, such as one tool, from the authors' raw files
	Rounds []map[string]float64          `json:"rounds,omitempty"` // figures of each repeat, in order, from the authors' raw files
}

// LoadOf is how a row of the table was called: by the row's own load if it has one, else by the table's.
func (t Table) LoadOf(r Row) Shape {
	switch {
	case r.Load != nil:
		return *r.Load
	case t.Load != nil:
		return *t.Load
	}
	return Shape{}
}

// A Shape is how a table's rows were called. What its authors do not state is zero, nil or empty.
type Shape struct {
	Model      string             `json:"model"`                    // closed | open
	Users      float64            `json:"users"`                    // callers at most at once; 0: a row's figure concurrency
	Stages     []Stage            `json:"stages,omitempty"`         // of the users
	Pause      *float64           `json:"pause_ms,omitempty"`       // that each iteration waits on purpose
	Requests   map[string]float64 `json:"requests,omitempty"`       // HTTP requests of an iteration, by contender
	Counted    float64            `json:"counted,omitempty"`        // of those, how many the rate counts; 0: all
	Operations float64            `json:"operations,omitempty"`     // of those, how many call what is measured
	Parts      map[string]float64 `json:"parts,omitempty"`          // how often an iteration has each part
	LatencyOf  []string           `json:"latency_of,omitempty"`     // the parts that the latency is of; empty: every request
	Delays     map[string]float64 `json:"delays_ms,omitempty"`      // that a part waits on purpose, once
	Samples    float64            `json:"samples,omitempty"`        // calls behind each row
	RTT        [2]float64         `json:"rtt_ms,omitzero"`          // between client and server, least and most
	Fresh      bool               `json:"new_connection,omitempty"` // each call connects
	Cores      float64            `json:"cores,omitempty"`          // that a contender may use
	Backend    bool               `json:"backend,omitempty"`        // calls wait for something behind the contender
	Success    string             `json:"success"`                  // how a reply is judged: status | length | content
	Order      string             `json:"order"`                    // of contenders: sequential | fixed | shuffled
}

// A Stage is a linear change of the number of users.
type Stage struct {
	Seconds float64 `json:"seconds"`
	To      float64 `json:"to"` // at its end, as a share of Shape.Users
}

// A Claim divides one row by another, as a table's authors do.
type Claim struct {
	Text   string  `json:"text"` // in our words
	Of     string  `json:"of"`   // labels of rows
	To     string  `json:"to"`
	Figure string  `json:"figure"` // of both rows
	Ratio  float64 `json:"ratio"`
}

// A pin is the digest that an embedded text must have.
type pin struct{ name, sha256 string }

// pins lists every table. A new digest here is a deliberate correction or addition of our transcription, never of a figure.
func pins() []pin {
	return []pin{
		{"aimultiple-mcp-gateways", "7ec05ae08c820b489bf071eef21a821a15ee95ad98d25fd99b48ab0b6e17dd9a"},
		{"civitas-bus", "dc2cfca1ec9173d1acf542a2405256ea1651866c1945ce198d1473eb1c8b9a4a"},
		{"civitas-gateway", "e7114cdfdfd2e3e1b2489737a6c4e41229ef4332d6abd9ae650d632109db1d43"},
		{"group-seed", "4ebb6a67a5998e177685c90286a42f4de2d6a5e3ac285a7ff2b4e01779944342"},
		{"jmrplens-gitlab-mcp", "3c16af3bc785414338d5bf895b2fa8b8b50d8734903937cb1ef449ef5349c0fc"},
		{"microsoft-locust-hosted-mcp", "29abe8e67b8aabc62f6a66a126f70986bfc0c5406b59a862994dae387a953f53"},
		{"receipt-seed", "932affc17eb7fdb953592c00cd777af45476de335cbcc6cd3aeedbf3ac11498d"},
		{"sco3-mcp-benchmark", "8af5056420138dd739c53de4c0104fdbe54836692898b981aeaf7c7dec98ffda"},
		{"spawn-early-run", "1c759ab451b591a8928208f1ab6ff729671674a523751bf350b63b5f5e887871"},
		{"spawn-seed", "abff19e91023686288d81aac0053e1fe4f0e7a7bc5e21c69ba58b5a379a1a925"},
		{"stacklok-toolhive", "ad70405be66a2e92a1c38a33c830915129516ca8df38a2fd0c8d50ae3599dfbc"},
		{"tmdevlab-v1-fork-dotnet", "74787e3b015a2d3a4b4c30bbe24b8c267b5132c1915b36e1d23d7470bc3b124e"},
		{"tmdevlab-v1-fork-rust", "751527a350815f200b7ad2207f8cbb84bf2a8b0ebbb3108b60decb15f2a577a5"},
		{"tmdevlab-v1", "812893f1c2c36c2ee150de5a74a11a1df250de47d029fc16557ad75713a9a90a"},
		{"tmdevlab-v2-exploratory", "24a5f4492f6fbc149de3c53d20eb303f51ca0f9b217d464c72e7d3919ec4fd6f"},
		{"tmdevlab-v2", "586b93e1684e2b573300fe5657e326cc161ae12f4186571f9c12a06af9f34a62"},
		{"transport-seed", "ae122239fa8f09902bee72cba3f3422af8756a63cd06105297e1eaffbc6776a5"},
		{"typescript-sdk-schema-conversion", "70680cbc80e9530ca3c7e440f187f8a508d83e628bc1551da63cd2978e75a393"},
	}
}

// Names lists the tables, in alphabetical order.
func Names() []string {
	var names []string
	for _, p := range pins() {
		names = append(names, p.name)
	}
	slices.Sort(names)
	return names
}

// Load returns the table of that name. It fails when there is none, or when the embedded text is not the one pinned.
func Load(name string) (Table, error) {
	all := pins()
	at := slices.IndexFunc(all, func(p pin) bool { return p.name == name })
	if at < 0 {
		return Table{}, fmt.Errorf("no published table %q; there are: %s", name, strings.Join(Names(), ", "))
	}
	text, err := files.ReadFile(name + ".json")
	if err != nil {
		return Table{}, fmt.Errorf("published table %s: %w", name, err)
	}
	return parse(all[at], text)
}

// parse decodes a text that has the pinned digest; an unknown key is an error.
func parse(p pin, text []byte) (Table, error) {
	sum := sha256.Sum256(text)
	got := hex.EncodeToString(sum[:])
	if got != p.sha256 {
		return Table{}, fmt.Errorf("published table %s was changed: its sha256 is %s, pinned is %s", p.name, got, p.sha256)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var t Table
	if err := d.Decode(&t); err != nil {
		return Table{}, fmt.Errorf("published table %s: %w", p.name, err)
	}
	if t.Name != p.name {
		return Table{}, fmt.Errorf("published table %s calls itself %q", p.name, t.Name)
	}
	t.SHA256 = got
	return t, nil
}
