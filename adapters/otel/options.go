package otel

import (
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/fencedlease/lease"
)

// Options configure [Trace] and [Shards]. A nil *Options means the defaults.
type Options struct {
	// Names specifies whether every data point and span has the attribute lease.name. Do not set Names if the
	// number of lease names is not limited. Default: false.
	Names bool

	// Attributes are added to every data point and span. Their keys must not be keys of this package. Default:
	// none.
	Attributes []attribute.KeyValue

	// Tracer creates a span "lease contend" for each contention and a span "lease term" for each term. A span
	// is created when its contention or term has ended. Shards have no spans. Default: no spans.
	Tracer trace.Tracer
}

const (
	keyName    = attribute.Key("lease.name")
	keyOutcome = attribute.Key("lease.outcome")
	keyReason  = attribute.Key("lease.reason")
	keyToken   = attribute.Key("lease.token")
	keyPrefix  = attribute.Key("lease.prefix")
)

const scope = "github.com/fencedlease/lease/adapters/otel"

func (o *Options) complete() (Options, error) {
	if o == nil {
		return Options{}, nil
	}
	for _, a := range o.Attributes {
		switch a.Key {
		case keyName, keyOutcome, keyReason, keyToken, keyPrefix:
			return Options{}, &lease.FieldError{Field: "Options.Attributes", Code: lease.ErrOption,
				Value: fmt.Sprintf("%q", a.Key), Bound: "must not be a key of this package"}
		}
	}
	return *o, nil
}

// The type labels caches the attributes of data points, so that recording a data point allocates no memory.
type labels struct {
	o    Options
	mu   sync.RWMutex
	kept map[labelKey]*label
}

// A labelKey has an empty key and value if the data point has no attribute besides the name.
type labelKey struct {
	name  string
	key   attribute.Key
	value string
}

type label struct {
	attributes []attribute.KeyValue
	add        []metric.AddOption
	record     []metric.RecordOption
}

func (l *labels) of(name string, key attribute.Key, value string) *label {
	if !l.o.Names {
		name = ""
	}
	k := labelKey{name, key, value}
	l.mu.RLock()
	known := l.kept[k]
	l.mu.RUnlock()
	if known != nil {
		return known
	}
	var made label
	made.attributes = append(made.attributes, l.o.Attributes...)
	if l.o.Names {
		made.attributes = append(made.attributes, keyName.String(name))
	}
	if key != "" {
		made.attributes = append(made.attributes, key.String(value))
	}
	option := metric.WithAttributeSet(attribute.NewSet(made.attributes...))
	made.add, made.record = []metric.AddOption{option}, []metric.RecordOption{option}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil {
		l.kept = map[labelKey]*label{}
	}
	l.kept[k] = &made
	return &made
}
