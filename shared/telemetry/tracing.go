package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// scope names what makes the spans.
const scope = "github.com/feira-shop/feira"

// queueSize is how many spans wait for their export at most: an operator ends those of a whole batch at once.
const queueSize = 8192

// stopWithin bounds the last export of a process that stops.
const stopWithin = 3 * time.Second

// VariableError says that an environment variable has a value that is of no use.
type VariableError struct{ Name, Value, Want string }

func (e *VariableError) Error() string {
	return fmt.Sprintf("telemetry: the variable %s is %q; expected %s", e.Name, e.Value, e.Want)
}

// TracingOptions say where traces go. What is zero follows from the variables of OpenTelemetry.
type TracingOptions struct {
	Endpoint string        // address of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318
	Instance string        // names this process among its replicas; "": none
	Every    time.Duration // between exports
	Log      *slog.Logger  // of exports that fail; nil: discard
}

// Tracing exports the spans of a process. They are handed over in memory and dropped where a collector does not keep
// up, so that it never holds up a service.
type Tracing struct {
	exporter  *otlptrace.Exporter // nil: traces are off
	processor sdktrace.SpanProcessor
	sampler   sdktrace.Sampler
	resource  *resource.Resource
}

// NewTracing prepares the export of traces over OTLP/HTTP as OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER and the
// other standard variables say. Without an endpoint traces are off and cost nothing. It does not wait for a collector.
// Errors: [*VariableError] for one with a value that is not understood.
func NewTracing(ctx context.Context, o TracingOptions) (*Tracing, error) {
	on, err := exports(o)
	if err != nil || !on {
		return &Tracing{}, err
	}
	t := &Tracing{}
	if t.sampler, err = sampler(os.Getenv("OTEL_TRACES_SAMPLER"), os.Getenv("OTEL_TRACES_SAMPLER_ARG")); err != nil {
		return nil, err
	}
	if t.resource, err = described(ctx, o.Instance); err != nil {
		return nil, err
	}
	var to []otlptracehttp.Option
	if o.Endpoint != "" {
		address, err := url.JoinPath(o.Endpoint, "v1/traces")
		if err != nil {
			return nil, fmt.Errorf("telemetry: the collector's address %q: %w", o.Endpoint, err)
		}
		to = append(to, otlptracehttp.WithEndpointURL(address))
	}
	if t.exporter, err = otlptracehttp.New(ctx, to...); err != nil {
		return nil, fmt.Errorf("telemetry: export traces: %w", err)
	}
	var batches []sdktrace.BatchSpanProcessorOption
	if os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE") == "" {
		batches = append(batches, sdktrace.WithMaxQueueSize(queueSize))
	}
	if o.Every > 0 {
		batches = append(batches, sdktrace.WithBatchTimeout(o.Every))
	}
	t.processor = sdktrace.NewBatchSpanProcessor(t.exporter, batches...)
	otel.SetErrorHandler(newComplaints(o.Log))
	return t, nil
}

// exports tells whether spans are to be exported, and refuses ways of doing so that this program does not have.
func exports(o TracingOptions) (bool, error) {
	first := func(names ...string) (string, string) {
		for _, n := range names {
			if v := os.Getenv(n); v != "" {
				return n, v
			}
		}
		return "", ""
	}
	name, endpoint := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	if off, err := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED")); err == nil && off || endpoint == "" && o.Endpoint == "" {
		return false, nil
	}
	if u, err := url.Parse(endpoint); endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return false, &VariableError{name, endpoint, "an address such as http://127.0.0.1:4318"}
	}
	switch name, exporter := first("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return false, nil
	case "", "otlp":
	default:
		return false, &VariableError{name, exporter, "otlp or none"}
	}
	name, protocol := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	if protocol != "" && protocol != "http/protobuf" {
		return false, &VariableError{name, protocol, "http/protobuf, which most collectors take on port 4318"}
	}
	return true, nil
}

// sampler reads the two variables. Whether a trace is kept is decided where it begins and holds for all of it, whatever
// the name says: half a trace explains nothing.
func sampler(name, arg string) (sdktrace.Sampler, error) {
	kind := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(name)), "parentbased_")
	switch kind {
	case "", "always_on":
		return sdktrace.ParentBased(sdktrace.AlwaysSample()), nil
	case "always_off":
		return sdktrace.ParentBased(sdktrace.NeverSample()), nil
	case "traceidratio":
		ratio := 1.0
		if arg = strings.TrimSpace(arg); arg != "" {
			var err error
			if ratio, err = strconv.ParseFloat(arg, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
				return nil, &VariableError{"OTEL_TRACES_SAMPLER_ARG", arg, "a number from 0 to 1"}
			}
		}
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio)), nil
	}
	return nil, &VariableError{"OTEL_TRACES_SAMPLER", name, "parentbased_always_on, parentbased_always_off or parentbased_traceidratio"}
}

// described is what the spans of all services of this process say of it.
func described(ctx context.Context, instance string) (*resource.Resource, error) {
	with := []resource.Option{
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(),
		resource.WithAttributes(semconv.ServiceVersion(ThisBuild().Version)),
	}
	if instance != "" {
		with = append(with, resource.WithAttributes(semconv.ServiceInstanceID(instance)))
	}
	r, err := resource.New(ctx, append(with, resource.WithFromEnv())...)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) { // a host without a name is described without it
		return nil, fmt.Errorf("telemetry: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return r, nil
}

// Service makes the tracer of a service, whose spans have the service.name feira-<name>; nil, which traces nothing, when
// traces are off.
func (t *Tracing) Service(name string) *Tracer {
	if t == nil || t.exporter == nil {
		return nil
	}
	own := resource.NewSchemaless(semconv.ServiceName("feira-" + name))
	r, err := resource.Merge(t.resource, own)
	if err != nil { // of descriptions by different versions of the conventions
		r = own
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithResource(r), sdktrace.WithSampler(t.sampler),
		sdktrace.WithIDGenerator(planned{}), sdktrace.WithSpanProcessor(t.processor))
	return &Tracer{provider: p, tracer: p.Tracer(scope)}
}

// Stop exports what is left, for 3 s at most.
func (t *Tracing) Stop(ctx context.Context) {
	if t == nil || t.exporter == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := t.processor.Shutdown(ctx); err != nil {
		otel.Handle(err)
		_ = t.exporter.Shutdown(ctx) // cuts the export short that is in flight
	}
}

// complaints logs what fails in exporting, at most once a minute: a collector that is down fails all the time.
type complaints struct {
	log  *slog.Logger
	last atomic.Int64 // Unix seconds
}

func newComplaints(log *slog.Logger) *complaints {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &complaints{log: log}
}

// Handle implements [otel.ErrorHandler].
func (c *complaints) Handle(err error) {
	now, last := time.Now().Unix(), c.last.Load()
	if now-last >= 60 && c.last.CompareAndSwap(last, now) {
		c.log.Warn("traces could not be exported; spans are dropped until the collector takes them again", "error", err)
	}
}
