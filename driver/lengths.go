package driver

import (
	"context"
	"encoding/json"
	"fmt"
)

// Lengths makes n requests of one body, one after the other and each on a connection of its own, and counts failures in two
// ways. differ counts the replies whose body is not as long as the first one's: that is how the load generator ab, without
// its option -l, counts failures. failed counts the replies whose status or body says that something failed.
func Lengths(ctx context.Context, addr, path string, n int) (differ, failed int, err error) {
	conn, err := Dial(ctx, ConnConfig{Addr: addr, MaxBody: 1 << 20})
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close()
	req := RawRequest{Method: "POST", Path: path, Header: "Content-Type: application/json\r\n", Body: []byte(`{"id":1}`)}
	first := 0
	for i := range n {
		reply, err := conn.Do(ctx, &req)
		if err != nil {
			return 0, 0, fmt.Errorf("request %d of %d: %w", i+1, n, err)
		}
		if i == 0 {
			first = len(reply.Body)
		}
		if len(reply.Body) != first {
			differ++
		}
		var r spawnReply
		if json.Unmarshal(reply.Body, &r) != nil || r.Status != "ok" || r.Error != "" || checkStatus(reply.Status, nil) != nil {
			failed++
		}
		conn.Close()
	}
	return differ, failed, nil
}
