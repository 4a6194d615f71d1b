package agent

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"toll/wire/envelope"
)

// Spans returns an observer that makes a span of each message handled, below the span that the message carries. While it is
// handled the message carries the new one, so that what [Context.Derive] makes stands below that.
func Spans(p trace.TracerProvider) Observer { return spans{p.Tracer("toll/system/agent")} }

type spans struct{ tracer trace.Tracer }

// Handling starts the span of a message.
func (s spans) Handling(ctx context.Context, agent string, m *envelope.Message) func(error) {
	if ctx == nil {
		ctx = context.Background()
	}
	if parent, ok := spanOf(m); ok {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	_, span := s.tracer.Start(ctx, "handle "+m.Type, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("messaging.destination.name", agent), attribute.String("messaging.message.id", m.ID),
		attribute.Int("toll.attempt", m.Attempt),
	))
	traceID, spanID, parentID := m.TraceID, m.SpanID, m.ParentSpanID
	if sc := span.SpanContext(); sc.IsValid() {
		m.TraceID, m.SpanID, m.ParentSpanID = sc.TraceID().String(), sc.SpanID().String(), m.SpanID
	}
	return func(err error) {
		m.TraceID, m.SpanID, m.ParentSpanID = traceID, spanID, parentID
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// spanOf returns the span that a message carries.
func spanOf(m *envelope.Message) (trace.SpanContext, bool) {
	t, err := trace.TraceIDFromHex(m.TraceID)
	if err != nil {
		return trace.SpanContext{}, false
	}
	s, err := trace.SpanIDFromHex(m.SpanID)
	if err != nil {
		return trace.SpanContext{}, false
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: t, SpanID: s, TraceFlags: trace.FlagsSampled, Remote: true}), true
}
