package env

import (
	"fmt"

	"golang.org/x/sys/windows"
)

func (s *system) ask() {
	v := windows.RtlGetVersion()
	s.kernel = fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
}
