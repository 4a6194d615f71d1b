package zmtp

// NewProxy makes two sockets each of which sends what the other gets: XSUB and XPUB is the published topology's coordinator,
// ROUTER and DEALER shares workers. cfg holds for both; its Type and Handle are not looked at. Serve or connect both and
// close both.
func NewProxy(front, back Type, cfg Config) (f, b *Socket, err error) {
	var sockets [2]*Socket
	for i, t := range [2]Type{front, back} {
		c := cfg
		c.Type = t
		c.Handle = func(p *Peer, frames Message) {
			other := sockets[1-i]
			if t == Router {
				frames = append(Message{[]byte(p.identity)}, frames...)
			}
			// What can't be sent on is lost, as in any proxy; its sender sees no reply.
			other.Send(p.socket.ctx, frames...)
		}
		if sockets[i], err = New(c); err != nil {
			if i == 1 {
				sockets[0].Close()
			}
			return nil, nil, err
		}
	}
	return sockets[0], sockets[1], nil
}
