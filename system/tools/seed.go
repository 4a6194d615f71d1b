package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"toll/wire/resp"
)

// What the second publication's Redis holds before each server's run.
const (
	carts     = 10_000
	histories = 1000
	orders    = 20 // of a history
	limits    = 100
	popular   = "bench:popular"
	perPiece  = 1000 // commands that are sent at a time
)

// An Order is an entry of a history.
type Order struct {
	ID    string  `json:"order_id"`
	Items []Item  `json:"items"`
	Total float64 `json:"total"`
}

// Seed empties a Redis server and fills it: 10,000 carts, 1,000 histories of 20 orders, 100,000 scores, 100 counters.
func Seed(ctx context.Context, addr string) error {
	c := resp.New(addr)
	defer c.Close()
	var piece [][]string
	send := func(least int) error {
		if len(piece) < least || len(piece) == 0 {
			return nil
		}
		_, err := c.Do(ctx, piece...)
		piece = piece[:0]
		if err != nil {
			return fmt.Errorf("seeding: %w", err)
		}
		return nil
	}
	add := func(words ...string) error {
		piece = append(piece, words)
		return send(perPiece)
	}
	err := add("FLUSHALL")
	for n := 0; n < carts && err == nil; n++ {
		err = add(seededCart(n)...)
	}
	for n := 0; n < histories && err == nil; n++ {
		err = add(seededHistory(n)...)
	}
	for i := 0; i < products && err == nil; i += 100 {
		words := []string{"ZADD", popular}
		for k := i; k < i+100; k++ {
			words = append(words, strconv.Itoa(k*7%10_000), "product:"+strconv.Itoa(k+1))
		}
		err = add(words...)
	}
	for n := 0; n < limits && err == nil; n++ {
		err = add("SET", "bench:ratelimit:"+userName(n), "0")
	}
	if err != nil {
		return err
	}
	return send(1)
}

// seededCart is a hash from a product to how many of it, two or, for every third user, three.
func seededCart(n int) []string {
	words := []string{"HSET", "bench:cart:" + userName(n)}
	factors := []int{7, 13}
	if n%3 == 0 {
		factors = append(factors, 17)
	}
	for i, f := range factors {
		words = append(words, strconv.Itoa(f*n%products+1), strconv.Itoa(i+1))
	}
	return words
}

func seededHistory(n int) []string {
	words := []string{"RPUSH", "bench:history:" + userName(n)}
	for k := range orders {
		entry, err := json.Marshal(Order{
			ID: fmt.Sprintf("seed-%05d-%02d", n, k), Items: []Item{{(n*31+k)%products + 1, 1 + k%3}}, Total: round2(float64(10+k) * 1.5),
		})
		if err != nil {
			panic("an order as JSON: " + err.Error())
		}
		words = append(words, string(entry))
	}
	return words
}
