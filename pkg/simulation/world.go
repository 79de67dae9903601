// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// Start is the virtual time at which a World begins by default. It is not at a whole second.
var Start = time.Date(2026, 3, 1, 12, 0, 0, 700_000_000, time.UTC)

// maxBurst is the default of Options.MaxBurst.
const maxBurst = 2000

// Options configure a World.
type Options struct {
	// Scheme has all kinds of the world; nil means the scheme of NewScheme. A world may add kinds, so worlds that run
	// in parallel must not share one.
	Scheme *runtime.Scheme
	// Definitions default and validate the objects of their kinds. Kinds without one are not
	// validated.
	Definitions []*Definition
	// Start is the virtual time at which the world begins; zero means Start.
	Start time.Time
	// MaxBurst is the number of reconciles at one moment above which the world assumes a busy loop and
	// fails; zero means 2000.
	MaxBurst int
	// Log receives one line for each stored change and each life of a process; nil means none.
	Log func(line string)
}

// World is an API server, the processes that use it, and the virtual time. It must be used by one
// goroutine. Nothing happens in it but in Run, RunFor, and RunUntil, and by its clients.
type World struct {
	options     Options
	now         time.Time
	api         client.WithWatch // the fake client
	scheme      *runtime.Scheme
	store       *store
	definitions map[schema.GroupVersionKind]*Definition
	unserved    map[schema.GroupResource]bool
	collects    bool // dependents are collected

	processes []*Process
	timers    []timer
	sequence  int // of timers and UIDs
	observers []func(Change)
	invalid   map[string][]error // by actor
	actor     string
	// fieldManager is the field manager of the request that is being served; empty means the actor.
	fieldManager string
	// applied is the configuration that is being applied, with the fields that it names and no others;
	// nil if none is.
	applied *unstructured.Unstructured
	burst   int
	turn    int // the process whose turn it is
	err     error
}

// defaultMapper returns the mapper of NewScheme's kinds. Unlike schemes, mappers never change.
var defaultMapper = sync.OnceValue(func() meta.RESTMapper { return testrestmapper.TestOnlyStaticRESTMapper(NewScheme()) })

type timer struct {
	at   time.Time
	seq  int
	fire func()
}

// relaxCollector has the garbage collector run less often, unless GOGC is set: worlds allocate much
// and keep little of it. Tests with hundreds of lives take a third less processor time.
var relaxCollector = sync.OnceFunc(func() {
	const byDefault = 100
	if before := debug.SetGCPercent(4 * byDefault); before != byDefault {
		debug.SetGCPercent(before)
	}
})

// New returns a world without objects and processes.
func New(options Options) *World {
	relaxCollector()
	mapper := defaultMapper
	if options.Scheme == nil {
		options.Scheme = NewScheme()
	} else {
		mapper = func() meta.RESTMapper { return testrestmapper.TestOnlyStaticRESTMapper(options.Scheme) }
	}
	if options.Start.IsZero() {
		options.Start = Start
	}
	if options.MaxBurst == 0 {
		options.MaxBurst = maxBurst
	}
	w := &World{options: options, now: options.Start, scheme: options.Scheme, actor: "test"}
	w.definitions, w.unserved = map[schema.GroupVersionKind]*Definition{}, map[schema.GroupResource]bool{}
	w.invalid = map[string][]error{}
	w.store = newStore(w, options.Scheme)
	builder := fake.NewClientBuilder().WithScheme(w.scheme).WithRESTMapper(mapper()).WithObjectTracker(w.store)
	for _, object := range kindsWithStatus() {
		builder.WithStatusSubresource(object)
		if gvk, err := apiutil.GVKForObject(object, w.scheme); err == nil {
			w.store.status[gvk] = true
		}
	}
	for _, definition := range options.Definitions {
		w.definitions[definition.kind] = definition
	}
	w.api = builder.Build()
	return w
}

// Now returns the virtual time of the API server.
func (w *World) Now() time.Time { return w.now }

// Clock returns the clock of the API server.
func (w *World) Clock() *Clock { return &Clock{world: w} }

// Scheme returns the scheme of the world.
func (w *World) Scheme() *runtime.Scheme { return w.scheme }

// Observe adds a function that is called after each change that the API server has stored. It may
// read, and must not write.
func (w *World) Observe(observer func(Change)) { w.observers = append(w.observers, observer) }

func (w *World) observe(change Change) {
	if w.options.Log != nil {
		w.Logf("%s %s", change.Actor, describeChange(change))
	}
	if w.store.seeding {
		return
	}
	for _, observer := range w.observers {
		observer(change)
	}
}

// Logf writes a line with the virtual time to the log.
func (w *World) Logf(format string, args ...any) {
	if w.options.Log != nil {
		w.options.Log(w.now.UTC().Format("15:04:05.000") + " " + fmt.Sprintf(format, args...))
	}
}

func describeChange(change Change) string {
	verb := "updates"
	switch {
	case change.Old == nil:
		verb = "creates"
	case change.New == nil:
		verb = "deletes"
	}
	object := change.Object()
	name := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
	return fmt.Sprintf("%s %s %s at %s", verb, change.Kind.Kind, name, object.GetResourceVersion())
}

// newUID returns a UID that depends on nothing but the number of objects that were created before. As on an API server,
// UIDs differ in their first eight digits, from which names are made.
func (w *World) newUID() types.UID {
	w.sequence++
	return types.UID(fmt.Sprintf("%08d-0000-4000-8000-000000000000", w.sequence))
}

func (w *World) admit(gvk schema.GroupVersionKind, old, object client.Object) error {
	if definition := w.definitions[gvk]; definition != nil {
		return definition.Admit(old, object)
	}
	if job, ok := object.(*batchv1.Job); ok && !w.store.seeding {
		before, _ := old.(*batchv1.Job)
		return validateJob(before, job)
	}
	return nil
}

// Add stores objects as they are, with their status.
func (w *World) Add(objects ...client.Object) error {
	for _, object := range objects {
		if err := w.store.Add(object.DeepCopyObject()); err != nil {
			return fmt.Errorf("adding %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// Set replaces stored objects, status included. Resource versions are not compared.
func (w *World) Set(objects ...client.Object) error {
	for _, object := range objects {
		_, gvr, _, err := w.stored(object)
		if err == nil {
			err = w.store.Update(gvr, object.DeepCopyObject(), object.GetNamespace())
		}
		if err != nil {
			return fmt.Errorf("setting %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// After calls a function once d has passed.
func (w *World) After(d time.Duration, do func()) { w.at(w.now.Add(d), do) }

func (w *World) at(t time.Time, do func()) {
	w.sequence++
	w.timers = append(w.timers, timer{at: t, seq: w.sequence, fire: do})
}

// Fail ends the run with an error; the first one counts.
func (w *World) Fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Err returns the error that has ended the run, or nil.
func (w *World) Err() error { return w.err }

// Advance lets the time pass without anything else: a request that takes long, for example.
func (w *World) Advance(d time.Duration) { w.now = w.now.Add(d) }

// Jump moves all clocks by d, as if all machines had been suspended or their clocks had been set:
// what was to happen in a minute still happens in a minute.
func (w *World) Jump(d time.Duration) {
	w.now = w.now.Add(d)
	for i := range w.timers {
		w.timers[i].at = w.timers[i].at.Add(d)
	}
	for _, p := range w.processes {
		p.jump(d)
	}
}

// RunFor lets d pass.
func (w *World) RunFor(d time.Duration) error {
	end := w.now.Add(d)
	w.at(end, func() {}) // there is something to wait for until then
	return w.run(func() bool { return !w.now.Before(end) && w.idle() }, end.Add(time.Hour))
}

// RunUntil lets time pass until the condition holds, at most for a limit. The condition is
// evaluated whenever something has changed or the time has moved.
func (w *World) RunUntil(limit time.Duration, done func() bool) error {
	return w.run(done, w.now.Add(limit))
}

// ErrDeadline is the error of a run whose condition does not hold within the limit.
var ErrDeadline = errors.New("the condition does not hold within the limit")

// ErrQuiet is the error of a run in which nothing more is going to happen.
var ErrQuiet = errors.New("nothing is going to happen any more, and the condition does not hold")

func (w *World) run(done func() bool, limit time.Time) error {
	for {
		w.deliver()
		switch {
		case w.err != nil:
			return w.err
		case done():
			return nil
		case w.now.After(limit):
			return ErrDeadline
		}
		if w.reconcileNext() {
			continue
		}
		if !w.advance() {
			return ErrQuiet
		}
	}
}

// deliver hands the changes to the caches.
func (w *World) deliver() {
	for _, p := range w.processes {
		p.deliver()
	}
	for gvr, changes := range w.store.journal {
		consumed := w.store.offset[gvr] + len(changes)
		for _, p := range w.processes {
			consumed = min(consumed, p.position(gvr))
		}
		if n := consumed - w.store.offset[gvr]; n > 0 {
			w.store.journal[gvr] = slices.Clone(changes[n:])
			w.store.offset[gvr] = consumed
		}
	}
}

// reconcileNext runs one reconcile, of the process whose turn it is and that has one to run.
func (w *World) reconcileNext() bool {
	for range w.processes {
		w.turn = (w.turn + 1) % len(w.processes)
		if w.processes[w.turn].reconcileNext() {
			if w.burst++; w.burst > w.options.MaxBurst {
				w.Fail(fmt.Errorf("process %s: more than %d reconciles at %s: a busy loop", w.processes[w.turn].name, w.options.MaxBurst, w.now))
			}
			return true
		}
	}
	return false
}

func (w *World) idle() bool {
	return !slices.ContainsFunc(w.processes, (*Process).ready)
}

// advance moves the time to the next timer.
func (w *World) advance() bool {
	var next time.Time
	consider := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for _, t := range w.timers {
		consider(t.at)
	}
	for _, p := range w.processes {
		if at := p.next(); !at.IsZero() {
			consider(at)
		}
	}
	if next.IsZero() {
		return false
	}
	if next.After(w.now) {
		w.now, w.burst = next, 0
	} else if w.burst++; w.burst > w.options.MaxBurst {
		w.Fail(fmt.Errorf("more than %d timers at %s: a busy loop", w.options.MaxBurst, w.now))
	}
	due, rest := []timer{}, []timer{}
	for _, t := range w.timers {
		if t.at.After(w.now) {
			rest = append(rest, t)
		} else {
			due = append(due, t)
		}
	}
	w.timers = rest
	slices.SortFunc(due, func(a, b timer) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.seq - b.seq
	})
	for _, t := range due {
		t.fire()
	}
	return true
}

// applying serves a request that applies a configuration. The fake client decodes it into the type of
// its kind, where a field that it does not name is an empty one.
func (w *World) applying(config runtime.ApplyConfiguration, do func() error) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return fmt.Errorf("applying %T: %w", config, err)
	}
	w.applied = &unstructured.Unstructured{Object: content}
	defer func() { w.applied = nil }()
	return do()
}

// managing serves a request with the field manager that its client names.
func (w *World) managing(fieldManager string, do func() error) error {
	w.fieldManager = fieldManager
	defer func() { w.fieldManager = "" }()
	return do()
}

// as makes requests in the name of an actor.
func (w *World) as(actor string, do func() error) error {
	before := w.actor
	w.actor = actor
	defer func() { w.actor = before }()
	err := do()
	if apierrors.IsInvalid(err) {
		w.invalid[actor] = append(w.invalid[actor], err)
	}
	return err
}

// Invalid returns the errors of the writes of an actor that the API server has rejected as invalid.
func (w *World) Invalid(actor string) []error { return w.invalid[actor] }

// Quiet reports whether no process has anything to do at this moment.
func (w *World) Quiet() bool { return w.idle() }

func background() context.Context { return context.Background() }
