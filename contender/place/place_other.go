//go:build !linux

package place

import "os/exec"

// Usable says that this system does not tell.
func Usable() (Set, error) { return nil, ErrUnavailable }

// Enter says that this system does not hold processes to processors.
func (s Set) Enter(*exec.Cmd) (leave func() error, err error) { return nil, ErrUnavailable }

// InForce says the same.
func (s Set) InForce(int) error { return ErrUnavailable }

// Move says the same.
func (s Set) Move(int) error { return ErrUnavailable }

// Hold says the same.
func Hold(Set) (release func() error, err error) { return nil, ErrUnavailable }
