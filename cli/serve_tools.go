package cli

import (
	"strings"

	"toll/system"
)

// toolFlags are those of serve that have to do with the tools of published benchmarks.
type toolFlags struct {
	Set       string `help:"ops over MCP, gateway: serve the tools of a published benchmark, tmdevlab-v1 or tmdevlab-v2, in place of our operations." default:"" placeholder:"NAME"`
	Catalogue string `help:"tmdevlab-v2: where its catalogue is, that of 'toll serve catalogue'." placeholder:"URL"`
	Redis     string `help:"tmdevlab-v2: its Redis server; catalogue: the one to empty and to fill." placeholder:"HOST:PORT"`
}

// config checks the flags against the system and returns what they say.
func (f *toolFlags) config(name, envelope string) (system.Tools, error) {
	t := system.Tools{Set: f.Set, Catalogue: strings.TrimSuffix(f.Catalogue, "/"), Redis: f.Redis}
	overMCP := name == "ops" && (envelope == "mcp" || strings.HasPrefix(envelope, "mcp-"))
	switch {
	case f.Set != "" && !overMCP && name != "gateway":
		return t, usage("--set: only gateway and ops over an mcp envelope have it")
	case f.Catalogue != "" && f.Set != system.ShopTools:
		return t, usage("--catalogue: only --set %s has it", system.ShopTools)
	case f.Redis != "" && f.Set != system.ShopTools && name != "catalogue":
		return t, usage("--redis: only --set %s and catalogue have it", system.ShopTools)
	}
	return t, nil
}
