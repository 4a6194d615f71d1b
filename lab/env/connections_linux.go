package env

import (
	"net"
	"time"
)

// connections opens n connections over loopback. end closes them by a reset: the system then forgets them in seconds, where an
// orderly end is kept for minutes.
func connections(n int) (end func(), err error) {
	var open []net.Conn
	end = func() {
		for _, c := range open {
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	l.(*net.TCPListener).SetDeadline(time.Now().Add(connectWithin))
	for range n {
		c, err := net.DialTimeout("tcp4", l.Addr().String(), connectWithin)
		if err != nil {
			end()
			return nil, err
		}
		open = append(open, c)
		a, err := l.Accept()
		if err != nil {
			end()
			return nil, err
		}
		open = append(open, a)
	}
	return end, nil
}

// connectWithin bounds what takes a millisecond.
const connectWithin = 2 * time.Second
