package system

import (
	"toll/system/bus"
)

// handlerOf returns what a listening worker answers with, whether that waits for nothing, and what ends it.
func handlerOf(carrier string) (h bus.Handler, quick bool, end func() error) {
	return echo, true, func() error { return nil }
}

// openInproc makes callers in the worker's own process.
func (b *BusClient) openInproc() (func() caller, error) {
	l := bus.NewInproc(bus.NewResponder(echo, bus.Config{}))
	b.closing(l.Close)
	return func() caller { return onLink(l) }, nil
}
