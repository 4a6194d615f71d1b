package contender_test

import (
	"syscall"
	"time"
)

func detached() *syscall.SysProcAttr { return nil }

func used() time.Duration { panic("no test on Windows asks for it") }
