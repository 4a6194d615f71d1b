//go:build !linux && !darwin && !windows

package env

func (s *system) ask() {}
