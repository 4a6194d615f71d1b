package contender

import (
	"context"
	"os"

	"toll/contender/hop"
	"toll/contender/limits"
	"toll/contender/owner"
)

// FolderPrefix begins the names of the folders that runs keep sockets and fixtures in.
const FolderPrefix = "toll-"

// Clean ends and removes what runs left behind whose own process is gone: contenders, containers, control groups, devices,
// folders. Each bears a mark of ours that says whose it was; what bears none is not touched, and nothing of a run that lives.
func Clean(ctx context.Context) []owner.Found {
	out := cleanProcesses()
	out = append(out, cleanContainers(ctx)...) // no client makes one any more
	out = append(out, cleanMonitors(ctx)...)
	out = append(out, limits.Clean()...)
	out = append(out, hop.Clean()...)
	return append(out, owner.CleanFolders(os.TempDir(), FolderPrefix)...)
}
