package suite

import (
	"fmt"

	"toll/driver"
	"toll/system"
)

// The parts into which the requests of an iteration are counted beside their own: every one of them, those that the published
// method calls MCP requests, and the calls of tools alone.
const (
	everyRequest = "http"
	countedPart  = "counted"
	toolPart     = "tools"
)

const mcpPath = "/mcp"

// A toolCall is one call of a tool, as the published client makes it, and what the reply must hold.
type toolCall struct {
	tool, arguments string
	want            []driver.JSONWant // within the result
}

func want(value string, path ...string) driver.JSONWant {
	return driver.JSONWant{Path: path, Value: value}
}

func some(path ...string) driver.JSONWant { return driver.JSONWant{Path: path, Any: true} }

// toolCalls are the calls of an iteration. endpoint is what is fetched.
func toolCalls(set, endpoint string) []toolCall {
	const user = "user-${vu:5}"
	if set == system.ShopTools {
		return []toolCall{
			{"search_products", `{"category":"Electronics","min_price":50,"max_price":500,"limit":10}`, []driver.JSONWant{
				want("Electronics", "category"), want("2251", "total_found"), want("50", "products", "0", "price"), some("products", "9", "sku"), some("top10_popular_ids", "9"),
			}},
			{"get_user_cart", `{"user_id":"` + user + `"}`, []driver.JSONWant{
				some("user_id"), some("cart", "items", "1", "product_id"), some("cart", "estimated_total"), some("recent_history", "4", "order_id"),
			}},
			{"checkout", `{"user_id":"` + user + `","items":[{"product_id":42,"quantity":2},{"product_id":1337,"quantity":1}]}`, []driver.JSONWant{
				want("confirmed", "status"), want("24.63", "total"), want("2", "items_count"), some("order_id"), some("rate_limit_count"),
			}},
		}
	}
	return []toolCall{
		{"calculate_fibonacci", `{"n":10}`, []driver.JSONWant{want("55", "result"), want("10", "input")}},
		{"fetch_external_data", fmt.Sprintf(`{"endpoint":%q}`, endpoint), []driver.JSONWant{want("200", "status_code"), want(endpoint, "url")}},
		{"process_json_data", `{"data":{"name":"benchmark","count":42,"nested":{"key":"value"}}}`, []driver.JSONWant{
			want("BENCHMARK", "transformed_data", "name"), want("42", "transformed_data", "count"), want("VALUE", "transformed_data", "nested", "key"),
		}},
		{"simulate_database_query", `{"query":"SELECT * FROM benchmarks","delay_ms":10}`, []driver.JSONWant{
			want("SELECT * FROM benchmarks", "query"), want("10", "delay_ms"), some("timestamp"),
		}},
	}
}

// mcpSteps is an iteration over MCP: a session for each call and one for the list of tools. A session that the server
// gave an id is ended.
func mcpSteps(set, endpoint string) []driver.Step {
	var out []driver.Step
	calls := toolCalls(set, endpoint)
	for _, c := range calls {
		expect := []driver.JSONWant{want("2", "id")}
		for _, w := range c.want {
			w.Path = append([]string{"result", "content", "0", "text", "@json"}, w.Path...)
			expect = append(expect, w)
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, c.tool, c.arguments)
		out = append(out, mcpSession(driver.Step{Name: c.tool, Body: body, Expect: driver.Expect{JSON: expect}, Also: []string{everyRequest, countedPart, toolPart}})...)
	}
	last := fmt.Sprint(len(calls) - 1)
	return append(out, mcpSession(driver.Step{
		Name: "tools_list", Body: `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		Expect: driver.Expect{JSON: []driver.JSONWant{want("2", "id"), some("result", "tools", last, "inputSchema")}}, Also: []string{everyRequest, countedPart},
	})...)
}

// mcpSession is a session with one request in it, as the published client has it.
func mcpSession(request driver.Step) []driver.Step {
	const id = "session"
	head := []string{"Content-Type: application/json", "Accept: application/json, text/event-stream"}
	known := append(append([]string(nil), head...), "Mcp-Session-Id: ${"+id+"}")
	request.Method, request.Path, request.Header = "POST", mcpPath, known
	return []driver.Step{
		{
			Name: "initialize", Method: "POST", Path: mcpPath, Header: head,
			Body:   `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"k6-bench","version":"1.0"}}}`,
			Expect: driver.Expect{JSON: []driver.JSONWant{want("1", "id"), some("result", "protocolVersion")}},
			Fields: map[string]string{id: "Mcp-Session-Id"}, Also: []string{everyRequest, countedPart},
		},
		{
			Name: "initialized", Method: "POST", Path: mcpPath, Header: known,
			Body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, Also: []string{everyRequest},
		},
		request,
		{Name: "delete", Method: "DELETE", Path: mcpPath, Header: known, Needs: id, Also: []string{everyRequest}},
	}
}

// restSteps is an iteration over plain HTTP: the same calls, and the document that lists them.
func restSteps(set, endpoint string) []driver.Step {
	head := []string{"Content-Type: application/json"}
	var out []driver.Step
	var listed []driver.JSONWant
	for _, c := range toolCalls(set, endpoint) {
		out = append(out, driver.Step{
			Name: c.tool, Method: "POST", Path: "/v1/" + c.tool, Header: head, Body: c.arguments,
			Expect: driver.Expect{JSON: c.want}, Also: []string{everyRequest, countedPart, toolPart},
		})
		listed = append(listed, some("paths", "/v1/"+c.tool, "post"))
	}
	return append(out, driver.Step{
		Name: "tools_list", Method: "GET", Path: "/openapi.json", Expect: driver.Expect{JSON: listed}, Also: []string{everyRequest, countedPart},
	})
}

// unchecked are the same requests of a server that answers all of them alike.
func unchecked(steps []driver.Step) []driver.Step {
	for i := range steps {
		steps[i].Expect = driver.Expect{}
	}
	return steps
}

// cannedSession is a reply that is right for no request and long enough for each, with a session's id where one is given.
func cannedSession(sessions bool) []byte {
	const body = `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"input\":10,\"result\":55,\"server_type\":\"null\"}"}]}}`
	head := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
	if sessions {
		head += "Mcp-Session-Id: 00000000000000000000000000000000\r\n"
	}
	return fmt.Appendf(nil, "%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
}
