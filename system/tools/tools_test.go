package tools_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/system/tools"
	"toll/wire/resp"
)

// call calls a tool with JSON and returns its result as JSON would carry it, without what differs from call to call.
func call(t *testing.T, set []tools.Tool, name, args string) (map[string]any, error) {
	t.Helper()
	for _, tool := range set {
		if tool.Name != name {
			continue
		}
		var in map[string]any
		if err := json.Unmarshal([]byte(args), &in); err != nil {
			t.Fatal(err)
		}
		v, err := tool.Call(t.Context(), in)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var out map[string]any
		if err := json.Unmarshal(data, &out); err != nil {
			t.Fatal(err)
		}
		for _, k := range []string{"response_time_ms", "timestamp", "order_id", "server_type"} {
			delete(out, k)
		}
		return out, nil
	}
	t.Fatalf("no tool %s", name)
	return nil, nil
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func first(t *testing.T) []tools.Tool {
	t.Helper()
	set, err := tools.Set(tools.V1, tools.Backends{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// serve starts a backend and returns its URL.
func serve(t *testing.T, s *tools.Service) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve(l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		s.Shutdown(context.Background())
		wg.Wait()
	})
	return "http://" + l.Addr().String()
}

func TestTheFirstSet(t *testing.T) {
	t.Parallel()
	api := serve(t, tools.NewAPI()) + "/api"
	for _, c := range []struct{ tool, args, want string }{
		{"calculate_fibonacci", `{"n":10}`, `{"input":10,"result":55}`},
		{"calculate_fibonacci", `{"n":0}`, `{"input":0,"result":0}`},
		{"fetch_external_data", `{"endpoint":"` + api + `"}`, `{"url":"` + api + `","status_code":200}`},
		{"fetch_external_data", `{"endpoint":"` + api + `/none"}`, `{"url":"` + api + `/none","status_code":404}`},
		{"process_json_data", `{"data":{"name":"b","n":[1,"x",null],"o":{"k":"v"}}}`, `{"original_keys":["n","name","o"],"transformed_data":{"name":"B","n":[1,"X",null],"o":{"k":"V"}}}`},
		{"simulate_database_query", `{"query":"q","delay_ms":2}`, `{"query":"q","delay_ms":2}`},
		{"simulate_database_query", `{"query":"q"}`, `{"query":"q","delay_ms":0}`},
	} {
		got, err := call(t, first(t), c.tool, c.args)
		if diff := cmp.Diff(object(t, c.want), got); err != nil || diff != "" {
			t.Errorf("%s %s: %v\n%s", c.tool, c.args, err, diff)
		}
	}
	got, err := call(t, first(t), "fetch_external_data", `{"endpoint":"http://127.0.0.1:1/"}`)
	if err != nil || got["status_code"] != 0.0 || got["error"] == nil {
		t.Errorf("a backend that is not there: %v, %v", got, err)
	}
}

func TestTheFirstSetRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tool, args, want string }{
		{"calculate_fibonacci", `{}`, "n is missing"},
		{"calculate_fibonacci", `{"n":41}`, "n: want a whole number from 0 to 40"},
		{"calculate_fibonacci", `{"n":"10"}`, "n: want a whole number from 0 to 40"},
		{"fetch_external_data", `{"endpoint":"ftp://x"}`, "endpoint: want http://… or https://…"},
		{"process_json_data", `{"data":[1]}`, "data: want an object"},
		{"process_json_data", `{"data":{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}}`, "data: more than 64 levels"},
		{"simulate_database_query", `{"query":"q","delay_ms":6000}`, "delay_ms: want a whole number from 0 to 5000"},
		{"simulate_database_query", `{"query":1}`, "query: want a text"},
	} {
		if got, err := call(t, first(t), c.tool, c.args); err == nil || err.Error() != c.want {
			t.Errorf("%s %.60s: %v, %v; want %s", c.tool, c.args, got, err, c.want)
		}
	}
	for set, want := range map[string]string{
		"x":      `tools "x": want one of tmdevlab-v1, tmdevlab-v2`,
		tools.V2: "tools tmdevlab-v2: they need a catalogue and a Redis server",
	} {
		if _, err := tools.Set(set, tools.Backends{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// A query that nobody waits for any more ends.
func TestAQueryEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := first(t)[3].Call(ctx, map[string]any{"query": "q", "delay_ms": 5000.0})
		done <- err
	}()
	cancel()
	if err := <-done; err != context.Canceled {
		t.Error(err)
	}
}

func get(t *testing.T, url string) (int, map[string]any) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, object(t, string(data))
}

// The figures are the publication's: its client wants 2,251 products.
func TestTheCatalogue(t *testing.T) {
	t.Parallel()
	url := serve(t, tools.NewCatalogue())
	status, found := get(t, url+"/products/search?category=Electronics&min_price=50&max_price=500&limit=10")
	list, _ := found["products"].([]any)
	if status != 200 || found["total_found"] != 2251.0 || len(list) != 10 {
		t.Fatalf("status %d, %v found, %d listed", status, found["total_found"], len(list))
	}
	last := 0.0
	for _, p := range list {
		price := p.(map[string]any)["price"].(float64)
		if price < 50 || price < last {
			t.Errorf("price %v behind %v", price, last)
		}
		last = price
	}
	if _, p := get(t, url+"/products/1337"); p["id"] != 1337.0 || p["sku"] != "SKU-001336" || p["price"] != 14.36 || p["rating"] != 2.6 {
		t.Errorf("product 1337 is %v", p)
	}
	for path, want := range map[string]int{
		"/products/0": 404, "/products/100001": 404, "/products/x": 404, "/products/search?category=Books": 400,
		"/products/search?category=Books&min_price=1&max_price=2&limit=101": 400,
	} {
		if status, _ := get(t, url+path); status != want {
			t.Errorf("%s: status %d, want %d", path, status, want)
		}
	}
	for body, want := range map[string]string{
		`{"items":[{"product_id":42,"quantity":2},{"product_id":1337,"quantity":1}]}`: `{"subtotal":17.18,"discount":0,"tax":1.46,"shipping":5.99,"total":24.63}`,
		`{"items":[{"product_id":9901,"quantity":1}]}`:                                `{"subtotal":100,"discount":10,"tax":7.65,"shipping":0,"total":97.65}`,
		`{"items":[]}`:                              `{"error":"want items, each with product_id and quantity"}`,
		`{"items":[{"product_id":1}]}`:              `{"error":"an item without a product or a quantity"}`,
		`{"items":[{"product_id":0,"quantity":1}]}`: `{"error":"an item without a product or a quantity"}`,
	} {
		r, err := http.Post(url+"/cart/calculate", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || string(data) != want {
			t.Errorf("%s: %s, %v; want %s", body, data, err, want)
		}
	}
}

// A store is as much of Redis as the tools use, in memory: enough to hold the seed and to be asked.
type store struct {
	mu     sync.Mutex
	hashes map[string][]string
	lists  map[string][]string
	scores map[string]string
	counts map[string]int
}

func (s *store) answer(words []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	array := func(all []string) string {
		out := fmt.Sprintf("*%d\r\n", len(all))
		for _, v := range all {
			out += fmt.Sprintf("$%d\r\n%s\r\n", len(v), v)
		}
		return out
	}
	switch words[0] {
	case "HSET":
		s.hashes[words[1]] = words[2:]
		return ":1\r\n"
	case "HGETALL":
		return array(s.hashes[words[1]])
	case "RPUSH":
		s.lists[words[1]] = append(s.lists[words[1]], words[2:]...)
		return ":1\r\n"
	case "LRANGE":
		return array(s.lists[words[1]][:5])
	case "ZADD":
		for i := 2; i < len(words); i += 2 {
			s.scores[words[i+1]] = words[i]
		}
		return ":1\r\n"
	case "ZREVRANGE":
		var top []string
		for i := range 10 {
			top = append(top, fmt.Sprintf("product:%d", 100*(i+1)))
		}
		return array(top)
	case "INCR", "ZINCRBY":
		s.counts[words[1]]++
		return fmt.Sprintf(":%d\r\n", s.counts[words[1]])
	case "SET", "FLUSHALL":
		return "+OK\r\n"
	}
	return "-ERR unknown command " + words[0] + "\r\n"
}

func redis(t *testing.T) (*store, string) {
	t.Helper()
	s := &store{hashes: make(map[string][]string), lists: make(map[string][]string), scores: make(map[string]string), counts: make(map[string]int)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				for in := bufio.NewReader(nc); ; {
					v, err := resp.Read(in)
					if err != nil {
						return
					}
					var words []string
					for _, w := range v.List {
						words = append(words, w.Text)
					}
					io.WriteString(nc, s.answer(words))
				}
			}()
		}
	}()
	return s, l.Addr().String()
}

func TestTheSecondSet(t *testing.T) {
	t.Parallel()
	s, addr := redis(t)
	if err := tools.Seed(t.Context(), addr); err != nil {
		t.Fatal(err)
	}
	if len(s.hashes) != 10_000 || len(s.lists) != 1000 || len(s.lists["bench:history:user-00042"]) != 20 || len(s.scores) != 100_000 || s.scores["product:2"] != "7" {
		t.Errorf("seeded: %d carts, %d histories, %d scores", len(s.hashes), len(s.lists), len(s.scores))
	}
	if got := s.hashes["bench:cart:user-00042"]; !cmp.Equal(got, []string{"295", "1", "547", "2", "715", "3"}) {
		t.Errorf("the cart of user 42 is %v", got)
	}
	set, err := tools.Set(tools.V2, tools.Backends{Catalogue: serve(t, tools.NewCatalogue()), Redis: addr})
	if err != nil {
		t.Fatal(err)
	}
	got, err := call(t, set, "search_products", `{}`)
	if err != nil || got["total_found"] != 2251.0 || len(got["products"].([]any)) != 10 || len(got["top10_popular_ids"].([]any)) != 10 {
		t.Errorf("search: %v, %v", got, err)
	}
	got, err = call(t, set, "get_user_cart", `{"user_id":"user-00042"}`)
	cart, _ := got["cart"].(map[string]any)
	if err != nil || cart["item_count"] != 3.0 || cart["estimated_total"] != 23.64 || len(got["recent_history"].([]any)) != 5 {
		t.Errorf("cart: %v, %v", got, err)
	}
	for n := range 2 {
		got, err = call(t, set, "checkout", `{"user_id":"user-00142","items":[{"product_id":42,"quantity":2},{"product_id":1337,"quantity":1}]}`)
		want := object(t, fmt.Sprintf(`{"user_id":"user-00142","total":24.63,"items_count":2,"rate_limit_count":%d,"status":"confirmed"}`, n+1))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("checkout: %v\n%s", err, diff)
		}
	}
	for _, c := range []struct{ tool, args, want string }{
		{"search_products", `{"limit":0}`, "limit: want a whole number from 1 to 100"},
		{"search_products", `{"min_price":"x"}`, "min_price: want a number that is not below zero"},
		{"get_user_cart", `{"user_id":"nobody"}`, "user_id: nobody has no cart"},
		{"checkout", `{"user_id":"x"}`, "user_id: want one such as user-00042"},
		{"checkout", `{"items":[]}`, "items: want 1 to 1000"},
		{"checkout", `{"items":[{"quantity":1}]}`, "items: want product_id and quantity in each"},
	} {
		if _, err := call(t, set, c.tool, c.args); err == nil || err.Error() != c.want {
			t.Errorf("%s %s: %v, want %s", c.tool, c.args, err, c.want)
		}
	}
}

// What the catalogue answers wrongly is the tool's error, not a result.
func TestACatalogueThatFails(t *testing.T) {
	t.Parallel()
	_, addr := redis(t)
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/cart") {
			io.WriteString(w, "no JSON")
			return
		}
		w.WriteHeader(503)
	}))
	t.Cleanup(bad.Close)
	set, err := tools.Set(tools.V2, tools.Backends{Catalogue: bad.URL, Redis: addr})
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]string{"search_products": "status 503", "checkout": "its answer: invalid character"} {
		if _, err := call(t, set, tool, `{}`); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

func BenchmarkFirstSet(b *testing.B) {
	set, err := tools.Set(tools.V1, tools.Backends{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	args := map[string]any{"data": map[string]any{"name": "benchmark", "nested": map[string]any{"key": "value"}}}
	for b.Loop() {
		if _, err := set[2].Call(b.Context(), args); err != nil {
			b.Fatal(err)
		}
	}
}
