package contender

import (
	"os"

	"golang.org/x/sys/unix"
)

func isMainThread() bool { return unix.Gettid() == os.Getpid() }
