package hop

import (
	"strings"

	"github.com/vishvananda/netlink"

	"toll/contender/owner"
)

// aliasPrefix begins the alias by which a device of ours says whose it is.
const aliasPrefix = "toll of "

// Clean removes the devices of runs that are gone, and with a pair's the other end. A namespace has no name and goes with the
// last process in it.
func Clean() []owner.Found {
	all, err := netlink.LinkList()
	if err != nil {
		return nil
	}
	var out []owner.Found
	for _, l := range all {
		text, ours := strings.CutPrefix(l.Attrs().Alias, aliasPrefix)
		if id, ok := owner.Parse(text); ours && ok && id.Gone() && strings.HasPrefix(l.Attrs().Name, "toll") {
			out = append(out, owner.Found{What: "device", Name: l.Attrs().Name, Err: netlink.LinkDel(l)})
		}
	}
	return out
}
