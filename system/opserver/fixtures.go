package opserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"toll/wire/mcp"
)

// addFixtures adds the tools, resources and prompts that the protocol's conformance suite calls by name. What each must do
// is the suite's; how it is done here is by the means that any tool has.
func addFixtures(core *mcp.Server) error {
	for _, add := range []func() error{
		func() error { return core.AddTools(contentTools()...) },
		func() error { return core.AddTools(talkingTools()...) },
		func() error { return core.AddTools(askingTools()...) },
		func() error { return core.AddTools(roundTripTools()...) },
		func() error { return core.AddTools(changingTools(core)...) },
		func() error { return core.AddResources(fixtureResources()...) },
		func() error { return core.AddTemplates(fixtureTemplate()) },
		func() error { return core.AddPrompts(fixturePrompts()...) },
	} {
		if err := add(); err != nil {
			return fmt.Errorf("conformance: %w", err)
		}
	}
	return nil
}

// fixture is a tool without arguments.
func fixture(name, description string, call func(ctx context.Context, c *mcp.Call) (*mcp.Result, error)) mcp.Tool {
	return mcp.Tool{Name: name, Description: description, Input: json.RawMessage(`{"type":"object"}`), Call: call}
}

// gives is a tool that always gives the same.
func gives(name, description string, content ...mcp.Content) mcp.Tool {
	return fixture(name, description, func(context.Context, *mcp.Call) (*mcp.Result, error) {
		return &mcp.Result{Content: content}, nil
	})
}

// dot is a PNG of one red pixel, silence a WAV without a sample.
func dot() []byte {
	return decoded("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
}

func silence() []byte {
	return decoded("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=")
}

func decoded(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic("a fixture's bytes: " + err.Error())
	}
	return b
}

// textOf is a resource of text.
func textOf(uri, mimeType, text string) mcp.ResourceContent {
	return mcp.ResourceContent{URI: uri, MIMEType: mimeType, Text: &text}
}

// contentTools give each kind of content.
func contentTools() []mcp.Tool {
	image := mcp.Image("image/png", dot())
	return []mcp.Tool{
		gives("test_simple_text", "Gives a text.", mcp.Text("This is a simple text response for testing.")),
		gives("test_image_content", "Gives an image.", image),
		gives("test_audio_content", "Gives a sound.", mcp.Audio("audio/wav", silence())),
		gives("test_embedded_resource", "Gives a resource.",
			mcp.Embedded(textOf("test://embedded-resource", "text/plain", "This is an embedded resource content."))),
		gives("test_multiple_content_types", "Gives a text, an image and a resource.", mcp.Text("Multiple content types test:"), image,
			mcp.Embedded(textOf("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`))),
		fixture("test_error_handling", "Fails.", func(context.Context, *mcp.Call) (*mcp.Result, error) {
			return nil, fmt.Errorf("this tool intentionally returns an error for testing")
		}),
		{
			Name: "json_schema_2020_12_tool", Description: "Has a schema with the keywords of JSON Schema 2020-12.",
			Input: json.RawMessage(`{
				"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
				"$defs": {"address": {"$anchor": "addressDef", "type": "object",
					"properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
				"properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
					"contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}},
				"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
				"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
				"then": {"required": ["phone"]}, "else": {"required": ["email"]},
				"additionalProperties": false}`),
			Call: func(_ context.Context, c *mcp.Call) (*mcp.Result, error) {
				return mcp.TextResult("called with " + string(c.Arguments)), nil
			},
		},
		{
			Name: "test_x_mcp_header", Description: "Has a parameter that clients mirror in a header.",
			Input: json.RawMessage(`{"type":"object","properties":{
				"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`),
			Call: func(_ context.Context, c *mcp.Call) (*mcp.Result, error) {
				return mcp.TextResult("called with " + string(c.Arguments)), nil
			},
		},
	}
}

// pause is how long talking tools wait between what they say.
const pause = 50 * time.Millisecond

// rest waits, or returns the context's error.
func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// talkingTools say something before they are done.
func talkingTools() []mcp.Tool {
	return []mcp.Tool{
		fixture("test_tool_with_logging", "Logs while it works.", func(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
			for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
				if err := c.Log("info", "", text); err != nil {
					return nil, err
				}
				if err := rest(ctx, pause); err != nil {
					return nil, err
				}
			}
			return mcp.TextResult("done"), nil
		}),
		fixture("test_tool_with_progress", "Tells of its progress.", func(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
			for _, done := range []float64{0, 50, 100} {
				if err := c.Progress(done, 100, fmt.Sprintf("Completed step %v of 100", done)); err != nil {
					return nil, err
				}
				if err := rest(ctx, pause); err != nil {
					return nil, err
				}
			}
			return mcp.TextResult(string(c.ProgressToken())), nil
		}),
		fixture("test_logging_tool", "Logs once.", func(_ context.Context, c *mcp.Call) (*mcp.Result, error) {
			return mcp.TextResult("done"), c.Log("info", "test", "test_logging_tool was called")
		}),
		fixture("test_streaming_elicitation", "Tells of its progress on a stream.", func(_ context.Context, c *mcp.Call) (*mcp.Result, error) {
			return mcp.TextResult("done"), c.Progress(1, 1, "done")
		}),
		fixture("test_missing_capability", "Needs a client that can sample.", func(_ context.Context, c *mcp.Call) (*mcp.Result, error) {
			if !c.Can("sampling") {
				return nil, mcp.MissingCapability("sampling")
			}
			return mcp.TextResult("done"), nil
		}),
	}
}

// changingTools change what the server offers.
func changingTools(core *mcp.Server) []mcp.Tool {
	return []mcp.Tool{
		fixture("test_trigger_tool_change", "Changes the list of tools.", func(context.Context, *mcp.Call) (*mcp.Result, error) {
			if err := core.AddTools(gives("test_transient_tool", "Comes and goes.")); err != nil {
				return nil, err
			}
			return mcp.TextResult("changed"), core.RemoveTools("test_transient_tool")
		}),
		fixture("test_trigger_prompt_change", "Changes the list of prompts.", func(context.Context, *mcp.Call) (*mcp.Result, error) {
			if err := core.AddPrompts(says("test_transient_prompt", "Comes and goes.", "")); err != nil {
				return nil, err
			}
			return mcp.TextResult("changed"), core.RemovePrompts("test_transient_prompt")
		}),
	}
}
