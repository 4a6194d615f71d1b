package opserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"toll/wire/mcp"
)

// elicit is a question for what a schema's properties say.
func elicit(key, message, properties, required string) mcp.Question {
	schema := `{"type":"object","properties":` + properties
	if required != "" {
		schema += `,"required":["` + required + `"]`
	}
	params, err := json.Marshal(map[string]any{"message": message, "requestedSchema": json.RawMessage(schema + "}")})
	if err != nil {
		panic("a fixture's question: " + err.Error())
	}
	return mcp.Question{Key: key, Method: "elicitation/create", Params: params}
}

// sample is a question for the client's model.
func sample(key, prompt string) mcp.Question {
	params, err := json.Marshal(map[string]any{"maxTokens": 100, "messages": []any{map[string]any{
		"role": "user", "content": map[string]string{"type": "text", "text": prompt},
	}}})
	if err != nil {
		panic("a fixture's question: " + err.Error())
	}
	return mcp.Question{Key: key, Method: "sampling/createMessage", Params: params}
}

func roots(key string) mcp.Question {
	return mcp.Question{Key: key, Method: "roots/list", Params: json.RawMessage("{}")}
}

// accepted returns a member of the content that the user gave, "" if the user gave none.
func accepted(answer json.RawMessage, member string) string {
	var a struct {
		Action  string         `json:"action"`
		Content map[string]any `json:"content"`
	}
	if json.Unmarshal(answer, &a) != nil || a.Action != "accept" || a.Content[member] == nil {
		return ""
	}
	return fmt.Sprint(a.Content[member])
}

// sampled returns the text that the client's model gave.
func sampled(answer json.RawMessage) string {
	var a struct {
		Content struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return ""
	}
	return a.Content.Text
}

// argument returns a text among the arguments.
func argument(c *mcp.Call, name string) string {
	var all map[string]any
	if json.Unmarshal(c.Arguments, &all) != nil {
		return ""
	}
	text, _ := all[name].(string)
	return text
}

// askingTools ask the client while the call goes on, as clients up to 2025-11-25 are asked.
func askingTools() []mcp.Tool {
	asks := func(name, description, input string, question func(c *mcp.Call) mcp.Question) mcp.Tool {
		return mcp.Tool{
			Name: name, Description: description, Input: json.RawMessage(input),
			Call: func(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
				q := question(c)
				answers, err := c.Ask(ctx, nil, q)
				if err != nil {
					return nil, err
				}
				if q.Method == "sampling/createMessage" {
					return mcp.TextResult("LLM response: " + sampled(answers[q.Key])), nil
				}
				var a struct {
					Action  string          `json:"action"`
					Content json.RawMessage `json:"content"`
				}
				if err := json.Unmarshal(answers[q.Key], &a); err != nil {
					return nil, fmt.Errorf("the client's answer: %w", err)
				}
				return mcp.TextResult(fmt.Sprintf("Elicitation completed: action=%s, content=%s", a.Action, a.Content)), nil
			},
		}
	}
	const text = `{"type":"object","properties":{"prompt":{"type":"string"},"message":{"type":"string"}}}`
	return []mcp.Tool{
		asks("test_sampling", "Asks the client's model.", text, func(c *mcp.Call) mcp.Question { return sample("answer", argument(c, "prompt")) }),
		asks("test_elicitation", "Asks the user.", text, func(c *mcp.Call) mcp.Question {
			return elicit("answer", argument(c, "message"), `{"username":{"type":"string","description":"User's response"},
				"email":{"type":"string","description":"User's email address"}}`, "username")
		}),
		asks("test_elicitation_sep1034_defaults", "Asks the user and proposes answers.", `{"type":"object"}`, func(*mcp.Call) mcp.Question {
			return elicit("answer", "Please review and update the form fields with defaults", `{
				"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
				"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}`, "")
		}),
		asks("test_elicitation_sep1330_enums", "Asks the user to choose.", `{"type":"object"}`, func(*mcp.Call) mcp.Question {
			return elicit("answer", "Please select options from the enum fields", `{
				"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
				"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},
					{"const":"value3","title":"Third Option"}]},
				"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
				"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
				"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":[{"const":"value1","title":"First Choice"},
					{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}`, "")
		}),
	}
}

// nameSchema are the properties of a form that asks for a name.
const nameSchema = `{"name":{"type":"string"}}`

// roundTripTools need answers that clients of 2026-07-28 bring with a second request.
func roundTripTools() []mcp.Tool {
	asks := func(tool, description string, state []byte, questions []mcp.Question, done func(a map[string]json.RawMessage) string) mcp.Tool {
		return fixture(tool, description, func(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
			answers, err := c.Ask(ctx, state, questions...)
			if err != nil {
				return nil, err
			}
			return mcp.TextResult(done(answers)), nil
		})
	}
	one := func(q mcp.Question) []mcp.Question { return []mcp.Question{q} }
	confirm := one(elicit("confirm", "Please confirm", `{"ok":{"type":"boolean"}}`, "ok"))
	confirmed := func(map[string]json.RawMessage) string { return "state-ok: the state came back and was confirmed" }
	return []mcp.Tool{
		asks("test_input_required_result_elicitation", "Asks for a name.", nil, one(elicit("user_name", "What is your name?", nameSchema, "name")),
			func(a map[string]json.RawMessage) string { return "Hello, " + accepted(a["user_name"], "name") + "!" }),
		asks("test_input_required_result_sampling", "Asks the client's model.", nil, one(sample("capital_question", "What is the capital of France?")),
			func(a map[string]json.RawMessage) string { return "The model says: " + sampled(a["capital_question"]) }),
		asks("test_input_required_result_list_roots", "Asks for the client's roots.", nil, one(roots("client_roots")),
			func(a map[string]json.RawMessage) string { return "Roots: " + string(a["client_roots"]) }),
		asks("test_input_required_result_request_state", "Gives a state to bring back.", []byte("confirming"), confirm, confirmed),
		asks("test_input_required_result_tampered_state", "Gives a state to bring back unchanged.", []byte("confirming"), confirm, confirmed),
		asks("test_input_required_result_multiple_inputs", "Asks for three things at once.", []byte("all"), []mcp.Question{
			elicit("user_name", "What is your name?", nameSchema, "name"), sample("greeting", "Generate a greeting"), roots("client_roots"),
		}, func(a map[string]json.RawMessage) string {
			return sampled(a["greeting"]) + " " + accepted(a["user_name"], "name") + ", of " + string(a["client_roots"])
		}),
		fixture("test_input_required_result_multi_round", "Asks twice.", twoRounds),
		fixture("test_input_required_result_capabilities", "Asks for what the client can give.", whatItCan),
	}
}

// twoRounds asks for a name and then for a colour; the state of the second round is the name.
func twoRounds(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
	user, second := strings.CutPrefix(string(c.State()), "name=")
	if !second {
		if a := c.Answer("step1"); a != nil && string(c.State()) == "asked" {
			user, second = accepted(a, "name"), true
		}
	}
	if !second {
		_, err := c.Ask(ctx, []byte("asked"), elicit("step1", "Step 1: What is your name?", nameSchema, "name"))
		if err == nil {
			err = errors.New("an answer to step 1 without its state")
		}
		return nil, err
	}
	answers, err := c.Ask(ctx, []byte("name="+user), elicit("step2", "Step 2: What is your favorite color?", `{"color":{"type":"string"}}`, "color"))
	if err != nil {
		return nil, err
	}
	return mcp.TextResult(user + " likes " + accepted(answers["step2"], "color")), nil
}

// whatItCan asks only for what the client declared.
func whatItCan(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
	var questions []mcp.Question
	for capability, q := range map[string]mcp.Question{
		"elicitation": elicit("user_name", "What is your name?", nameSchema, "name"),
		"sampling":    sample("greeting", "Generate a greeting"),
		"roots":       roots("client_roots"),
	} {
		if c.Can(capability) {
			questions = append(questions, q)
		}
	}
	answers, err := c.Ask(ctx, nil, questions...)
	if err != nil {
		return nil, err
	}
	return mcp.TextResult(fmt.Sprintf("%d of %d answered", len(answers), len(questions))), nil
}
