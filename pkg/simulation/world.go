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

// Start is the default initial virtual time of a World. It is not a whole second.
var Start = time.Date(2026, 3, 1, 12, 0, 0, 700_000_000, time.UTC)

// maxBurst is the default of WorldOptions.MaxBurst.
const maxBurst = 2000

// WorldOptions configure a World.
type WorldOptions struct {
	// Scheme contains all kinds of the world. It defaults to NewScheme. A world may add kinds, so
	// parallel worlds must not share a scheme.
	Scheme *runtime.Scheme
	// Definitions default and validate the objects of their kinds. Objects of other kinds are not
	// validated.
	Definitions []*Definition
	// Start is the initial virtual time. It defaults to the constant Start.
	Start time.Time
	// MaxBurst is the maximum number of reconciles without progress of time. If it is exceeded, the
	// world assumes a busy loop and fails. It defaults to 2000.
	MaxBurst int
	// Log, if set, receives a line for each stored change and each life of a process.
	Log func(line string)
}

// World consists of an API server, the processes that use it, and virtual time. It must be used by
// a single goroutine. Things only happen in Run, RunFor, and RunUntil, and through its clients.
type World struct {
	options     WorldOptions
	now         time.Time
	api         client.WithWatch // the fake client
	scheme      *runtime.Scheme
	store       *store
	definitions map[schema.GroupVersionKind]*Definition
	unserved    map[schema.GroupResource]bool
	collects    bool // whether dependents are garbage-collected

	processes []*Process
	timers    []timer
	sequence  int // of timers and UIDs
	observers []func(Change)
	invalid   map[string][]error // by actor
	actor     string
	sent      time.Time // of the current request
	// fieldManager is the field manager of the current request; if it is empty, the actor is used.
	fieldManager string
	// applied is the configuration of the current apply request with exactly the fields that it
	// contains, or nil for other requests.
	applied *unstructured.Unstructured
	burst   int
	turn    int // the index of the process whose turn it is
	err     error
}

// defaultMapper returns the mapper for the kinds of NewScheme. It can be shared because, unlike
// schemes, mappers never change.
var defaultMapper = sync.OnceValue(func() meta.RESTMapper { return testrestmapper.TestOnlyStaticRESTMapper(NewScheme()) })

type timer struct {
	at   time.Time
	seq  int
	fire func()
}

// relaxCollector makes the garbage collector run less often, unless GOGC is set: worlds allocate a
// lot but keep little. This reduces the processor time of tests with hundreds of lives by a third.
var relaxCollector = sync.OnceFunc(func() {
	const byDefault = 100
	if before := debug.SetGCPercent(4 * byDefault); before != byDefault {
		debug.SetGCPercent(before)
	}
})

// New returns a world without objects or processes.
func New(options WorldOptions) *World {
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

// Now returns the API server's virtual time.
func (w *World) Now() time.Time { return w.now }

// Clock returns the API server's clock.
func (w *World) Clock() *Clock { return &Clock{world: w} }

// Scheme returns the scheme of the world.
func (w *World) Scheme() *runtime.Scheme { return w.scheme }

// Observe adds a function that is called after each stored change. It may read but must not write.
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

// newUID returns a UID that depends only on the number of objects created before. As on an API
// server, UIDs differ in their first eight digits, since names are derived from those.
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

// Add stores objects unchanged, including their status.
func (w *World) Add(objects ...client.Object) error {
	for _, object := range objects {
		if err := w.store.Add(object.DeepCopyObject()); err != nil {
			return fmt.Errorf("adding %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// Set replaces stored objects, including their status. It does not compare resource versions.
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

// After calls a function after d.
func (w *World) After(d time.Duration, do func()) { w.at(w.now.Add(d), do) }

func (w *World) at(t time.Time, do func()) {
	w.sequence++
	w.timers = append(w.timers, timer{at: t, seq: w.sequence, fire: do})
}

// Fail ends the run with an error. Only the first error counts.
func (w *World) Fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Err returns the error that ended the run, or nil.
func (w *World) Err() error { return w.err }

// Advance lets time pass while nothing else happens, such as during a slow request.
func (w *World) Advance(d time.Duration) { w.now = w.now.Add(d) }

// Jump moves all clocks by d, as if all machines had been suspended or their clocks had been set.
// Timers move as well: what is due in a minute is still due in a minute.
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
	w.at(end, func() {}) // makes the run continue until then
	return w.run(func() bool { return !w.now.Before(end) && w.idle() }, end.Add(time.Hour))
}

// RunUntil lets time pass until the condition is true, but no longer than limit. The condition is
// evaluated whenever something has changed or time has passed.
func (w *World) RunUntil(limit time.Duration, done func() bool) error {
	return w.run(done, w.now.Add(limit))
}

// ErrDeadline is returned by a run whose condition does not become true within the limit.
var ErrDeadline = errors.New("the condition does not hold within the limit")

// ErrQuiet is returned by a run in which nothing more will happen.
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

// deliver passes the changes to the caches.
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

// reconcileNext runs one reconcile. The processes with pending requests take turns.
func (w *World) reconcileNext() bool {
	for range w.processes {
		w.turn = (w.turn + 1) % len(w.processes)
		if w.processes[w.turn].reconcileNext() {
			if w.burst++; w.burst > w.options.MaxBurst {
				w.Fail(fmt.Errorf("process %s: more than %d reconciles at %s: a busy loop", w.processes[w.turn].program.Name, w.options.MaxBurst, w.now))
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

// applying serves an apply request. The fake client decodes the configuration into the type of its
// kind, where missing fields cannot be distinguished from empty ones.
func (w *World) applying(config runtime.ApplyConfiguration, do func() error) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return fmt.Errorf("applying %T: %w", config, err)
	}
	w.applied = &unstructured.Unstructured{Object: content}
	defer func() { w.applied = nil }()
	return do()
}

// managing serves a request with the given field manager.
func (w *World) managing(fieldManager string, do func() error) error {
	w.fieldManager = fieldManager
	defer func() { w.fieldManager = "" }()
	return do()
}

// as makes requests that an actor has sent at the given time.
func (w *World) as(actor string, sent time.Time, do func() error) error {
	actorBefore, sentBefore := w.actor, w.sent
	w.actor, w.sent = actor, sent
	defer func() { w.actor, w.sent = actorBefore, sentBefore }()
	err := do()
	if apierrors.IsInvalid(err) {
		w.invalid[actor] = append(w.invalid[actor], err)
	}
	return err
}

// Invalid returns the errors of an actor's writes that the API server has rejected as invalid.
func (w *World) Invalid(actor string) []error { return w.invalid[actor] }

// Quiet reports whether no process currently has anything to do.
func (w *World) Quiet() bool { return w.idle() }

func background() context.Context { return context.Background() }
