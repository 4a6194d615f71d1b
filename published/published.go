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
	Name    string            `json:"name"`    // what Load takes
	Title   string            `json:"title"`   // in our words
	Source  string            `json:"source"`  // authors, repository and commit, or page
	Date    string            `json:"date"`    // YYYY-MM or YYYY-MM-DD
	Machine string            `json:"machine"` // as stated by the authors
	Method  map[string]string `json:"method"`  // how they measured, a fact per key
	Unit    string            `json:"unit"`    // of Min and P50
	Rows    []Row             `json:"rows"`    // in published order
	Errata  []string          `json:"errata"`  // what the figures cannot mean, a sentence each
	SHA256  string            `json:"-"`       // of the embedded text, lower-case hex
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
}

// A pin is the digest that an embedded text must have.
type pin struct{ name, sha256 string }

// pins lists every table. A new digest here is a deliberate correction of our transcription, never of a figure.
func pins() []pin {
	return []pin{
		{"spawn-seed", "dbddf66a91207177ae611af274113f0a2eb8843411aa5622daa2b660b57a4384"},
		{"receipt-seed", "da6a3088bf4feec07f86341cc46d4ee42b117746d937945dfdd5a99f8f4e1cfc"},
		{"transport-seed", "98260fc14a5b9b06e7ad46992e0b24247e82d152f5bb04387c60e2bdd8909b5c"},
		{"group-seed", "96c8d310e8c49635e54a621fd658d598f875ce8934e0dd5650e858bd43648651"},
		{"civitas-bus", "86fc384b01ea71d84bf883b0d2810a0225d5d7db0bdc7929186998e8bfd4c2bc"},
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
