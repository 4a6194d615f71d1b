package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/redis/go-redis/v9"
)

// A shop serves the second set: a catalogue over HTTP and a Redis server stand behind it. Its connections are kept as the
// publication's are.
type shop struct {
	catalogue string
	http      *http.Client
	redis     *redis.Client
	orders    atomic.Int64
}

func newShop(catalogue, addr string) *shop {
	return &shop{
		catalogue: catalogue,
		http:      &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConns: 200, MaxIdleConnsPerHost: 100, IdleConnTimeout: 90 * time.Second}},
		redis:     redis.NewClient(&redis.Options{Addr: addr}),
	}
}

func (s *shop) ask(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.catalogue+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %.100s", method, path, resp.Status, data)
	}
	return json.Unmarshal(data, out)
}

func both(a, b func() error) error {
	var wg sync.WaitGroup
	var errA error
	wg.Go(func() { errA = a() })
	errB := b()
	wg.Wait()
	return errors.Join(errA, errB)
}

type searchIn struct {
	Category string  `json:"category,omitempty"`
	Min      float64 `json:"min_price,omitempty"`
	Max      float64 `json:"max_price,omitempty"`
	Limit    int     `json:"limit,omitempty"`
}

type product struct {
	ID     int     `json:"id"`
	SKU    string  `json:"sku"`
	Name   string  `json:"name"`
	Price  float64 `json:"price"`
	Rating float64 `json:"rating"`
	Rank   int     `json:"popularity_rank"`
}

type searchOut struct {
	Category string    `json:"category"`
	Total    int       `json:"total_found"`
	Products []product `json:"products"`
	Top      []int     `json:"top10_popular_ids"`
	Server   string    `json:"server_type"`
}

func (s *shop) search(ctx context.Context, _ *mcp.CallToolRequest, in searchIn) (*mcp.CallToolResult, searchOut, error) {
	out := searchOut{Category: in.Category, Server: serverType}
	q := url.Values{
		"category": {in.Category}, "limit": {strconv.Itoa(in.Limit)},
		"min_price": {strconv.FormatFloat(in.Min, 'f', -1, 64)}, "max_price": {strconv.FormatFloat(in.Max, 'f', -1, 64)},
	}
	err := both(
		func() error { return s.ask(ctx, http.MethodGet, "/products/search?"+q.Encode(), nil, &out) },
		func() error {
			names, err := s.redis.ZRevRange(ctx, "bench:popular", 0, 9).Result()
			for _, n := range names {
				id, _ := strconv.Atoi(strings.TrimPrefix(n, "product:"))
				out.Top = append(out.Top, id)
			}
			return err
		})
	for i := range out.Products {
		for k, id := range out.Top {
			if id == out.Products[i].ID {
				out.Products[i].Rank = k + 1
			}
		}
	}
	return nil, out, err
}

type cartIn struct {
	User string `json:"user_id,omitempty"`
}

type item struct {
	Product  int `json:"product_id"`
	Quantity int `json:"quantity"`
}

type cart struct {
	Items     []item  `json:"items"`
	Count     int     `json:"item_count"`
	Estimated float64 `json:"estimated_total"`
}

type cartOut struct {
	User    string `json:"user_id"`
	Cart    cart   `json:"cart"`
	History []any  `json:"recent_history"`
	Server  string `json:"server_type"`
}

func (s *shop) cart(ctx context.Context, _ *mcp.CallToolRequest, in cartIn) (*mcp.CallToolResult, cartOut, error) {
	out := cartOut{User: in.User, History: []any{}, Server: serverType}
	fields, err := s.redis.HGetAll(ctx, "bench:cart:"+in.User).Result()
	if err != nil || len(fields) == 0 {
		return nil, out, errors.Join(errors.New("no such cart"), err)
	}
	quantity := 0
	for id, n := range fields {
		i := item{}
		i.Product, _ = strconv.Atoi(id)
		i.Quantity, _ = strconv.Atoi(n)
		out.Cart.Items, quantity = append(out.Cart.Items, i), quantity+i.Quantity
	}
	var first product
	err = both(
		func() error {
			return s.ask(ctx, http.MethodGet, "/products/"+strconv.Itoa(out.Cart.Items[0].Product), nil, &first)
		},
		func() error {
			entries, err := s.redis.LRange(ctx, "bench:history:"+in.User, 0, 4).Result()
			for _, e := range entries {
				var order any
				if err := json.Unmarshal([]byte(e), &order); err != nil {
					return err
				}
				out.History = append(out.History, order)
			}
			return err
		})
	out.Cart.Count, out.Cart.Estimated = len(out.Cart.Items), math.Round(first.Price*float64(quantity)*100)/100
	return nil, out, err
}

type checkoutIn struct {
	User  string `json:"user_id,omitempty"`
	Items []item `json:"items,omitempty"`
}

type checkoutOut struct {
	Order  string  `json:"order_id"`
	User   string  `json:"user_id"`
	Total  float64 `json:"total"`
	Items  int     `json:"items_count"`
	Rate   int64   `json:"rate_limit_count"`
	Status string  `json:"status"`
	Server string  `json:"server_type"`
}

func (s *shop) checkout(ctx context.Context, _ *mcp.CallToolRequest, in checkoutIn) (*mcp.CallToolResult, checkoutOut, error) {
	out := checkoutOut{
		Order: fmt.Sprintf("order-%d-%d", time.Now().UnixMilli(), s.orders.Add(1)), User: in.User, Items: len(in.Items), Status: "confirmed", Server: serverType,
	}
	n, err := strconv.Atoi(strings.TrimPrefix(in.User, "user-"))
	if err != nil || len(in.Items) == 0 {
		return nil, out, errors.New("want user_id, such as user-00042, and items")
	}
	entry, err := json.Marshal(map[string]any{"order_id": out.Order, "items": in.Items})
	if err != nil {
		return nil, out, err
	}
	var price struct {
		Total float64 `json:"total"`
	}
	err = both(
		func() error {
			return s.ask(ctx, http.MethodPost, "/cart/calculate", map[string]any{"items": in.Items}, &price)
		},
		func() error {
			pipe := s.redis.Pipeline()
			rate := pipe.Incr(ctx, fmt.Sprintf("bench:ratelimit:user-%05d", n%100))
			pipe.RPush(ctx, "bench:history:"+in.User, entry)
			pipe.ZIncrBy(ctx, "bench:popular", 1, "product:"+strconv.Itoa(in.Items[0].Product))
			_, err := pipe.Exec(ctx)
			out.Rate = rate.Val()
			return err
		})
	out.Total = price.Total
	return nil, out, err
}
