package tools

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// How the catalogue is made up.
const (
	products   = 100_000
	categories = 20
	brands     = 50
	maxLimit   = 100
	maxCart    = 1 << 20 // bytes of a request
	maxItems   = 1000    // of a cart
)

// A Product is one of the catalogue.
type Product struct {
	ID          int      `json:"id"`
	SKU         string   `json:"sku"`
	Name        string   `json:"name"`
	Category    string   `json:"category"`
	Brand       string   `json:"brand"`
	Price       float64  `json:"price"`
	Stock       int      `json:"stock"`
	Rating      float64  `json:"rating"`
	Tags        []string `json:"tags"`
	Weight      float64  `json:"weight_kg"`
	Description string   `json:"description"`
}

// Category returns the name of a category by its number.
func Category(i int) string {
	return [categories]string{
		"Electronics", "Books", "Clothing", "Garden", "Kitchen", "Toys", "Sports", "Music", "Office", "Tools",
		"Automotive", "Health", "Beauty", "Groceries", "Pets", "Shoes", "Jewellery", "Outdoor", "Crafts", "Software",
	}[i%categories]
}

func tag(i int) string {
	return [8]string{"new", "sale", "popular", "limited", "eco", "premium", "bundle", "refurbished"}[i%8]
}

func round2(v float64) float64 { return math.Round(v*100) / 100 }

// product makes the product of a number from 0.
func product(i int) Product {
	p := Product{
		ID: i + 1, SKU: fmt.Sprintf("SKU-%06d", i), Category: Category(i), Brand: fmt.Sprintf("Brand %02d", i%brands+1),
		Price: round2(1 + float64(i%99_900)/100), Stock: i % 501, Rating: round2(1 + float64(i%40)/10), Weight: round2(float64(1+i%100) * .1),
	}
	p.Name = fmt.Sprintf("%s item %d", p.Category, p.ID)
	p.Description = fmt.Sprintf("%s by %s, number %d of the catalogue.", p.Name, p.Brand, p.ID)
	for k := range 2 + i%3 {
		p.Tags = append(p.Tags, tag(i+k))
	}
	return p
}

// A catalogue answers from memory. It does not change once it is made.
type catalogue struct {
	all []Product
	in  map[string][]*Product
}

// NewCatalogue makes the second publication's product service: GET /products/search, GET /products/{id}, POST
// /cart/calculate. A search goes through its category and sorts what it found, as the publication's does.
func NewCatalogue() *Service {
	c := &catalogue{all: make([]Product, products), in: make(map[string][]*Product)}
	for i := range c.all {
		p := product(i)
		c.all[i] = p
		c.in[p.Category] = append(c.in[p.Category], &c.all[i])
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /products/search", c.search)
	mux.HandleFunc("GET /products/{id}", c.one)
	mux.HandleFunc("POST /cart/calculate", c.calculate)
	return newService(mux)
}

func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"encoding the answer"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body) // an error means that the client has gone
}

func refuse(w http.ResponseWriter, status int, why string) {
	answer(w, status, map[string]string{"error": why})
}

type searchReply struct {
	Total    int        `json:"total_found"`
	Products []*Product `json:"products"`
}

func (c *catalogue) search(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	least, err1 := strconv.ParseFloat(q.Get("min_price"), 64)
	most, err2 := strconv.ParseFloat(q.Get("max_price"), 64)
	limit, err3 := strconv.Atoi(q.Get("limit"))
	if err1 != nil || err2 != nil || err3 != nil || limit < 1 || limit > maxLimit {
		refuse(w, http.StatusBadRequest, "want min_price, max_price and a limit of 1 to 100")
		return
	}
	var found []*Product
	for _, p := range c.in[q.Get("category")] {
		if p.Price >= least && p.Price <= most {
			found = append(found, p)
		}
	}
	slices.SortStableFunc(found, func(a, b *Product) int {
		switch {
		case a.Price < b.Price:
			return -1
		case a.Price > b.Price:
			return 1
		}
		return 0
	})
	answer(w, http.StatusOK, searchReply{len(found), found[:min(limit, len(found))]})
}

func (c *catalogue) product(id int) *Product {
	if id < 1 || id > len(c.all) {
		return nil
	}
	return &c.all[id-1]
}

func (c *catalogue) one(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(r.PathValue("id"))
	p := c.product(id)
	if err != nil || p == nil {
		refuse(w, http.StatusNotFound, "no such product")
		return
	}
	answer(w, http.StatusOK, p)
}

// An Item is a product and how many of it.
type Item struct {
	Product  int `json:"product_id"`
	Quantity int `json:"quantity"`
}

type cart struct {
	Items []Item `json:"items"`
}

type calculated struct {
	Subtotal float64 `json:"subtotal"`
	Discount float64 `json:"discount"`
	Tax      float64 `json:"tax"`
	Shipping float64 `json:"shipping"`
	Total    float64 `json:"total"`
}

func (c *catalogue) calculate(w http.ResponseWriter, r *http.Request) {
	var in cart
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCart)).Decode(&in); err != nil || len(in.Items) == 0 || len(in.Items) > maxItems {
		refuse(w, http.StatusBadRequest, "want items, each with product_id and quantity")
		return
	}
	var out calculated
	for _, item := range in.Items {
		p := c.product(item.Product)
		if p == nil || item.Quantity < 1 || item.Quantity > 1000 {
			refuse(w, http.StatusBadRequest, "an item without a product or a quantity")
			return
		}
		out.Subtotal += p.Price * float64(item.Quantity)
	}
	answer(w, http.StatusOK, out.priced())
}

// priced adds tax and shipping to a subtotal; from 100 on there is a discount and shipping is free.
func (c calculated) priced() calculated {
	c.Subtotal, c.Shipping = round2(c.Subtotal), 5.99
	if c.Subtotal >= 100 {
		c.Discount, c.Shipping = round2(c.Subtotal*.1), 0
	}
	c.Tax = round2((c.Subtotal - c.Discount) * .085)
	c.Total = round2(c.Subtotal - c.Discount + c.Tax + c.Shipping)
	return c
}

// userName is how users are called in keys: user-00042.
func userName(n int) string {
	digits := strconv.Itoa(n)
	return "user-" + strings.Repeat("0", max(5-len(digits), 0)) + digits
}
