package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"toll/wire/resp"
)

// maxAnswer bounds what the catalogue may answer.
const maxAnswer = 1 << 20

// A shop is what the second set's tools share.
type shop struct {
	catalogue string
	http      *client
	redis     *resp.Client
	orders    atomic.Int64
}

func newShop(b Backends) *shop {
	return &shop{catalogue: b.Catalogue, http: newClient(fetchTimeout, maxAnswer), redis: resp.New(b.Redis)}
}

func (s *shop) tools() []Tool {
	return []Tool{
		{
			Name: "search_products", About: "Finds products of a category within a price range, and says which are popular.", Waits: true,
			Input: object(0, "category", `{"type":"string"}`, "min_price", `{"type":"number"}`, "max_price", `{"type":"number"}`, "limit", `{"type":"integer"}`),
			Call:  s.search,
		},
		{
			Name: "get_user_cart", About: "Shows a user's cart and latest orders.", Waits: true,
			Input: object(0, "user_id", `{"type":"string"}`),
			Call:  s.cart,
		},
		{
			Name: "checkout", About: "Orders items for a user.", Waits: true,
			Input: object(0, "user_id", `{"type":"string"}`, "items", `{"type":"array","items":{"type":"object","properties":{"product_id":{"type":"integer"},"quantity":{"type":"integer"}},"required":["product_id","quantity"]}}`),
			Call:  s.checkout,
		},
	}
}

// ask makes a request of the catalogue and decodes its answer into out.
func (s *shop) ask(ctx context.Context, method, path string, body []byte, out any) error {
	got, err := s.http.do(ctx, method, s.catalogue+path, body)
	switch {
	case err != nil:
		return fmt.Errorf("catalogue: %w", err)
	case got.status != http.StatusOK:
		return fmt.Errorf("catalogue: %s %s: status %d: %.100s", method, path, got.status, got.body)
	case !got.whole:
		return fmt.Errorf("catalogue: %s %s: an answer of more than %d bytes", method, path, maxAnswer)
	}
	if err := json.Unmarshal(got.body, out); err != nil {
		return fmt.Errorf("catalogue: its answer: %w", err)
	}
	return nil
}

// both runs two things side by side and returns what went wrong.
func both(a, b func() error) error {
	var wg sync.WaitGroup
	var errA error
	wg.Go(func() { errA = a() })
	errB := b()
	wg.Wait()
	return errors.Join(errA, errB)
}

type foundProduct struct {
	ID     int     `json:"id"`
	SKU    string  `json:"sku"`
	Name   string  `json:"name"`
	Price  float64 `json:"price"`
	Rating float64 `json:"rating"`
	Rank   int     `json:"popularity_rank"` // 0: not among the most popular
}

type searched struct {
	Category string         `json:"category"`
	Total    int            `json:"total_found"`
	Products []foundProduct `json:"products"`
	Top      []int          `json:"top10_popular_ids"`
	Server   string         `json:"server_type"`
}

func (s *shop) search(ctx context.Context, args map[string]any) (any, error) {
	category, err := text(args, "category", "Electronics")
	if err != nil {
		return nil, err
	}
	least, err1 := amount(args, "min_price", 50)
	most, err2 := amount(args, "max_price", 500)
	limit, err3 := whole(args, "limit", 10, 1, maxLimit)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	q := url.Values{
		"category": {category}, "limit": {strconv.Itoa(limit)},
		"min_price": {strconv.FormatFloat(least, 'f', -1, 64)}, "max_price": {strconv.FormatFloat(most, 'f', -1, 64)},
	}
	var reply searchReply
	out := searched{Category: category, Server: serverType}
	err = both(
		func() error { return s.ask(ctx, http.MethodGet, "/products/search?"+q.Encode(), nil, &reply) },
		func() (err error) {
			out.Top, err = s.top(ctx)
			return err
		})
	if err != nil {
		return nil, err
	}
	rank := make(map[int]int, len(out.Top))
	for i, id := range out.Top {
		rank[id] = i + 1
	}
	out.Total, out.Products = reply.Total, make([]foundProduct, 0, len(reply.Products))
	for _, p := range reply.Products {
		out.Products = append(out.Products, foundProduct{p.ID, p.SKU, p.Name, p.Price, p.Rating, rank[p.ID]})
	}
	return out, nil
}

// amount returns an argument that is a price; without the argument, its default.
func amount(args map[string]any, name string, byDefault float64) (float64, error) {
	v, there := args[name]
	if !there {
		return byDefault, nil
	}
	n, ok := v.(float64)
	if !ok || n < 0 {
		return 0, fmt.Errorf("%s: want a number that is not below zero", name)
	}
	return n, nil
}

// top are the ten most popular products.
func (s *shop) top(ctx context.Context) ([]int, error) {
	got, err := s.redis.Do(ctx, []string{"ZREVRANGE", popular, "0", "9"})
	if err != nil {
		return nil, err
	}
	out := make([]int, 0, len(got[0].List))
	for _, v := range got[0].List {
		id, err := strconv.Atoi(strings.TrimPrefix(v.Text, "product:"))
		if err != nil {
			return nil, fmt.Errorf("redis: %s holds %q", popular, v.Text)
		}
		out = append(out, id)
	}
	return out, nil
}

type shownCart struct {
	Items     []Item  `json:"items"`
	Count     int     `json:"item_count"`
	Estimated float64 `json:"estimated_total"` // at the first product's price
}

type carted struct {
	User    string            `json:"user_id"`
	Cart    shownCart         `json:"cart"`
	History []json.RawMessage `json:"recent_history"`
	Server  string            `json:"server_type"`
}

func (s *shop) cart(ctx context.Context, args map[string]any) (any, error) {
	user, err := text(args, "user_id", "user-00042")
	if err != nil {
		return nil, err
	}
	got, err := s.redis.Do(ctx, []string{"HGETALL", "bench:cart:" + user})
	if err != nil {
		return nil, err
	}
	out := carted{User: user, Server: serverType}
	quantity := 0
	for i := 0; i+1 < len(got[0].List); i += 2 {
		id, err1 := strconv.Atoi(got[0].List[i].Text)
		n, err2 := strconv.Atoi(got[0].List[i+1].Text)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("redis: the cart of %s holds no numbers", user)
		}
		out.Cart.Items, quantity = append(out.Cart.Items, Item{id, n}), quantity+n
	}
	if len(out.Cart.Items) == 0 {
		return nil, fmt.Errorf("user_id: %s has no cart", user)
	}
	var p Product
	err = both(
		func() error {
			return s.ask(ctx, http.MethodGet, "/products/"+strconv.Itoa(out.Cart.Items[0].Product), nil, &p)
		},
		func() error {
			got, err := s.redis.Do(ctx, []string{"LRANGE", "bench:history:" + user, "0", "4"})
			if err != nil {
				return err
			}
			for _, v := range got[0].List {
				out.History = append(out.History, json.RawMessage(v.Text))
			}
			return nil
		})
	out.Cart.Count, out.Cart.Estimated = len(out.Cart.Items), round2(p.Price*float64(quantity))
	return out, err
}

type checkedOut struct {
	Order  string  `json:"order_id"`
	User   string  `json:"user_id"`
	Total  float64 `json:"total"`
	Items  int     `json:"items_count"`
	Rate   int64   `json:"rate_limit_count"`
	Status string  `json:"status"`
	Server string  `json:"server_type"`
}

func (s *shop) checkout(ctx context.Context, args map[string]any) (any, error) {
	user, err := text(args, "user_id", "user-00042")
	if err != nil {
		return nil, err
	}
	items, err := itemsOf(args)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimPrefix(user, "user-"))
	if err != nil {
		return nil, errors.New("user_id: want one such as user-00042")
	}
	body, err := json.Marshal(cart{items})
	if err != nil {
		return nil, err
	}
	out := checkedOut{
		Order: fmt.Sprintf("order-%d-%d", time.Now().UnixMilli(), s.orders.Add(1)), User: user, Items: len(items), Status: "confirmed", Server: serverType,
	}
	entry, err := json.Marshal(Order{ID: out.Order, Items: items})
	if err != nil {
		return nil, err
	}
	var price calculated
	err = both(
		func() error { return s.ask(ctx, http.MethodPost, "/cart/calculate", body, &price) },
		func() error {
			got, err := s.redis.Do(ctx,
				[]string{"INCR", "bench:ratelimit:" + userName(n%limits)},
				[]string{"RPUSH", "bench:history:" + user, string(entry)},
				[]string{"ZINCRBY", popular, "1", "product:" + strconv.Itoa(items[0].Product)})
			if err == nil {
				out.Rate = got[0].Int
			}
			return err
		})
	out.Total = price.Total
	return out, err
}

// itemsOf returns the items that are ordered, two of the publication's without the argument.
func itemsOf(args map[string]any) ([]Item, error) {
	v, there := args["items"]
	if !there {
		return []Item{{42, 2}, {1337, 1}}, nil
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 || len(list) > maxItems {
		return nil, fmt.Errorf("items: want 1 to %d", maxItems)
	}
	out := make([]Item, len(list))
	for i, e := range list {
		fields, _ := e.(map[string]any)
		id, err1 := whole(fields, "product_id", 0, 1, products)
		n, err2 := whole(fields, "quantity", 0, 1, 1000)
		if err := cmp.Or(err1, err2); err != nil || id == 0 || n == 0 {
			return nil, errors.New("items: want product_id and quantity in each")
		}
		out[i] = Item{id, n}
	}
	return out, nil
}
