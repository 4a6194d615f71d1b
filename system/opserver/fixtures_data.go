package opserver

import (
	"context"
	"encoding/json"
	"strings"

	"toll/wire/mcp"
)

// reads is a resource that always gives the same.
func reads(uri, title, mimeType string, content mcp.ResourceContent) mcp.Resource {
	return mcp.Resource{
		URI: uri, Name: title, MIMEType: mimeType,
		Read: func(context.Context, *mcp.Call) ([]mcp.ResourceContent, error) {
			return []mcp.ResourceContent{content}, nil
		},
	}
}

func fixtureResources() []mcp.Resource {
	const text, binary, watched = "test://static-text", "test://static-binary", "test://watched-resource"
	return []mcp.Resource{
		reads(text, "Static text", "text/plain", textOf(text, "text/plain", "This is the content of the static text resource.")),
		reads(binary, "Static binary", "image/png", mcp.ResourceContent{URI: binary, MIMEType: "image/png", Blob: dot()}),
		reads(watched, "Watched resource", "text/plain", textOf(watched, "text/plain", "Watched resource content")),
	}
}

func fixtureTemplate() mcp.Template {
	return mcp.Template{
		URI: "test://template/{id}/data", Name: "Template", MIMEType: "application/json",
		Read: func(_ context.Context, _ *mcp.Call, values map[string]string) ([]mcp.ResourceContent, error) {
			body, err := json.Marshal(map[string]any{"id": values["id"], "templateTest": true, "data": "Data for ID: " + values["id"]})
			if err != nil {
				return nil, err
			}
			return []mcp.ResourceContent{textOf("test://template/"+values["id"]+"/data", "application/json", string(body))}, nil
		},
		Complete: func(_ context.Context, _, value string, _ map[string]string) ([]string, error) {
			return beginning(value, "1", "2", "3"), nil
		},
	}
}

// beginning returns the words that begin with a prefix.
func beginning(prefix string, words ...string) (found []string) {
	for _, w := range words {
		if strings.HasPrefix(w, prefix) {
			found = append(found, w)
		}
	}
	return found
}

// says is a prompt of one message.
func says(name, description, text string) mcp.Prompt {
	return mcp.Prompt{Name: name, Description: description, Get: func(context.Context, *mcp.Call, map[string]string) (*mcp.PromptResult, error) {
		return userSays(description, mcp.Text(text)), nil
	}}
}

func userSays(description string, contents ...mcp.Content) *mcp.PromptResult {
	r := &mcp.PromptResult{Description: description}
	for _, c := range contents {
		r.Messages = append(r.Messages, mcp.Message{Role: "user", Content: c})
	}
	return r
}

func fixturePrompts() []mcp.Prompt {
	return []mcp.Prompt{
		says("test_simple_prompt", "A prompt without arguments.", "This is a simple prompt for testing."),
		{
			Name: "test_prompt_with_arguments", Description: "A prompt with arguments.",
			Arguments: []mcp.Argument{{Name: "arg1", Description: "First test argument", Required: true}, {Name: "arg2", Description: "Second test argument", Required: true}},
			Get: func(_ context.Context, _ *mcp.Call, a map[string]string) (*mcp.PromptResult, error) {
				return userSays("", mcp.Text("Prompt with arguments: arg1='"+a["arg1"]+"', arg2='"+a["arg2"]+"'")), nil
			},
			Complete: func(_ context.Context, _, value string, _ map[string]string) ([]string, error) {
				return beginning(value, "paris", "park", "party"), nil
			},
		},
		{
			Name: "test_prompt_with_embedded_resource", Description: "A prompt with a resource.",
			Arguments: []mcp.Argument{{Name: "resourceUri", Description: "URI of the resource to embed", Required: true}},
			Get: func(_ context.Context, _ *mcp.Call, a map[string]string) (*mcp.PromptResult, error) {
				return userSays("", mcp.Embedded(textOf(a["resourceUri"], "text/plain", "Embedded resource content for testing.")),
					mcp.Text("Please process the embedded resource above.")), nil
			},
		},
		{
			Name: "test_prompt_with_image", Description: "A prompt with an image.",
			Get: func(context.Context, *mcp.Call, map[string]string) (*mcp.PromptResult, error) {
				return userSays("", mcp.Image("image/png", dot()), mcp.Text("Please analyze the image above.")), nil
			},
		},
		{
			Name: "test_input_required_result_prompt", Description: "A prompt that asks for its context.",
			Get: func(ctx context.Context, c *mcp.Call, _ map[string]string) (*mcp.PromptResult, error) {
				answers, err := c.Ask(ctx, nil, elicit("user_context", "What context should the prompt use?", `{"context":{"type":"string"}}`, "context"))
				if err != nil {
					return nil, err
				}
				return userSays("", mcp.Text("Context: "+accepted(answers["user_context"], "context"))), nil
			},
		},
	}
}
