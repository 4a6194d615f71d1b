//go:build !libzmq

package main

import "errors"

var errWithout = errors.New("built without the tag libzmq")

type zmq struct{}

func version() string              { return "" }
func worker() error                { return errWithout }
func start() (*zmq, error)         { return nil, errWithout }
func (*zmq) close()                {}
func (*zmq) dial() (caller, error) { return nil, errWithout }
