// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
)

// Env contains the dependencies of one life of a program.
type Env struct {
	// Client reads from the caches of this life and writes to the API server.
	Client client.Client
	// Live reads directly from the API server.
	Live client.Reader
	// Clock is the clock of the machine that runs the program.
	Clock *Clock
	// Log discards its output by default.
	Log logr.Logger
}

// Program is a program that runs in a World, such as the operator. Each Start begins a new life.
type Program struct {
	// Name is the actor of its requests.
	Name string
	// Controllers returns the controllers of one life, starting with empty memory.
	Controllers func(Env) ([]manager.Controller, error)
	// Plan determines the outcome of each request; nil serves all requests.
	Plan FaultPlan
	// Latency is the duration of a write.
	Latency time.Duration
	// Direct makes the program read from the API server instead of caches. The simulators of other
	// components use it.
	Direct bool
	// OnCrash is called after a crash, for example to start the next life after a delay.
	OnCrash func()
	// Reconciled, unless nil, is called after each reconcile that did not crash.
	Reconciled func(reconcile.Request, reconcile.Result, error)

	counters counters
	lives    int
}

type counters struct{ requests, writes int }

// Process is one life of a Program.
type Process struct {
	program *Program
	world   *World
	life    int
	clock   *Clock
	dead    bool

	informers   []*informer
	controllers []*controllerRun
	turn        int
	stalled     []*call
	current     *call
}

// controllerRun is a controller of a process.
type controllerRun struct {
	declaration manager.Controller
	queue       *queue
	running     int
}

// busy reports whether the maximum number of concurrent reconciles has been reached.
func (c *controllerRun) busy() bool {
	return c.running >= max(1, c.declaration.MaxConcurrentReconciles)
}

// call is a reconcile in progress.
type call struct {
	controller *controllerRun
	request    reconcile.Request
	result     reconcile.Result
	err        error
	resume     func() (time.Duration, bool)
	stop       func()
	yield      func(time.Duration) bool
	goroutine  string
	wakeAt     time.Time
}

// Start begins a life of a program, with empty memory and caches that reflect the API server.
func (w *World) Start(program *Program) (*Process, error) {
	program.lives++
	p := &Process{program: program, world: w, life: program.lives, clock: w.Clock()}
	live := w.client(p.program.Name, w.live(), p.gate(false))
	var cached client.Client = live
	if !program.Direct {
		cached = manager.WholeLists(&cachedClient{WithWatch: live, reads: w.client(p.program.Name, p.cachedSource(), p.gate(true))})
	}
	declarations, err := program.Controllers(Env{Client: cached, Live: live, Clock: p.clock, Log: logr.Discard()})
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.program.Name, err)
	}
	kinds, err := manager.Kinds(declarations...)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.program.Name, err)
	}
	for _, kind := range kinds {
		i, err := newInformer(p, kind)
		if err != nil {
			return nil, fmt.Errorf("starting %s: %w", p.program.Name, err)
		}
		p.informers = append(p.informers, i)
	}
	for _, d := range declarations {
		if err := p.addController(d, manager.Clients{Client: cached, Live: live}); err != nil {
			return nil, fmt.Errorf("starting %s: %w", p.program.Name, err)
		}
	}
	w.Logf("%s starts life %d", p.program.Name, p.life)
	w.processes = append(w.processes, p)
	for _, i := range p.informers {
		i.list()
	}
	return p, nil
}

func (p *Process) addController(d manager.Controller, clients manager.Clients) error {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, 1000*time.Second)
	if d.RateLimiter != nil {
		limiter = d.RateLimiter()
	}
	c := &controllerRun{declaration: d, queue: newQueue(p.world, limiter)}
	p.controllers = append(p.controllers, c)
	for _, kind := range d.Reads {
		for _, i := range p.informers {
			if sameKind(i.kind.Object, kind.Object) {
				i.watches = append(i.watches, kindWatch{kind: kind, queue: c.queue})
			}
		}
	}
	if d.Bind == nil {
		return nil
	}
	return d.Bind(clients)
}

// sameKind reports whether two objects have the same kind and Go type. Objects without a specific
// Go type contain their kind.
func sameKind(a, b client.Object) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && a.GetObjectKind().GroupVersionKind() == b.GetObjectKind().GroupVersionKind()
}

// Clock returns the clock of the machine that runs the process.
func (p *Process) Clock() *Clock { return p.clock }

// Alive reports whether the process is running.
func (p *Process) Alive() bool { return !p.dead }

// Lag keeps changes of a kind from the process's caches for d.
func (p *Process) Lag(kind string, d time.Duration) {
	for _, i := range p.informers {
		if gvk, err := p.world.api.GroupVersionKindFor(i.kind.Object); err == nil && gvk.Kind == kind {
			i.behindUntil = p.world.now.Add(d)
		}
	}
	p.world.After(d, func() {}) // then the changes are delivered
}

// Enqueue requests a reconcile by every controller of the process, as if a watch had mapped a
// change to the request.
func (p *Process) Enqueue(request reconcile.Request) {
	for _, c := range p.controllers {
		c.queue.add(request)
	}
}

// jump shifts all times that the process is waiting for.
func (p *Process) jump(d time.Duration) {
	for _, c := range p.controllers {
		for request, at := range c.queue.due {
			c.queue.due[request] = at.Add(d)
		}
	}
	for _, c := range p.stalled {
		c.wakeAt = c.wakeAt.Add(d)
	}
	for _, i := range p.informers {
		i.behindUntil = i.behindUntil.Add(d)
	}
}

// Kill ends the process immediately, including stalled requests.
func (p *Process) Kill() {
	if p.dead {
		return
	}
	p.dead = true
	p.world.Logf("%s ends life %d", p.program.Name, p.life)
	p.world.processes = slices.DeleteFunc(p.world.processes, func(other *Process) bool { return other == p })
	for _, c := range p.stalled {
		p.discard(c)
	}
	p.stalled = nil
}

// discard unwinds a stalled reconcile.
func (p *Process) discard(c *call) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(crash); !ok {
				panic(r)
			}
		}
	}()
	p.current = c
	c.stop()
}

func (p *Process) context() context.Context { return ctrl.LoggerInto(background(), logr.Discard()) }

func (p *Process) deliver() {
	for _, i := range p.informers {
		i.deliver()
	}
	for _, c := range p.controllers {
		for _, channel := range c.declaration.Channels {
			p.poll(c, channel)
		}
	}
}

func (p *Process) poll(c *controllerRun, channel manager.Channel) {
	for {
		var received event.GenericEvent
		select {
		case received = <-channel.Events:
		default:
			return
		}
		for _, request := range channel.Requests(p.context(), received.Object) {
			c.queue.add(request)
		}
	}
}

// position returns the number of changes of a kind that the process has consumed.
func (p *Process) position(gvr schema.GroupVersionResource) int {
	for _, i := range p.informers {
		if i.gvr == gvr {
			return i.position
		}
	}
	return int(^uint(0) >> 1)
}

func (p *Process) ready() bool {
	return slices.ContainsFunc(p.controllers, func(c *controllerRun) bool {
		c.queue.release()
		return len(c.queue.ready) > 0 && !c.busy()
	}) || slices.ContainsFunc(p.stalled, func(c *call) bool { return !c.wakeAt.After(p.world.now) })
}

// next returns the time at which the process has something to do, or the zero time if there is
// nothing.
func (p *Process) next() time.Time {
	var next time.Time
	consider := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, c := range p.controllers {
		if !c.busy() { // it continues when a reconcile ends
			consider(c.queue.next())
		}
	}
	for _, c := range p.stalled {
		consider(c.wakeAt)
	}
	return next
}

// reconcileNext resumes a stalled reconcile or starts the next one.
func (p *Process) reconcileNext() bool {
	for i, c := range p.stalled {
		if !c.wakeAt.After(p.world.now) {
			p.stalled = slices.Delete(p.stalled, i, i+1)
			p.step(c)
			return true
		}
	}
	for range p.controllers {
		p.turn = (p.turn + 1) % len(p.controllers)
		c := p.controllers[p.turn]
		if c.busy() {
			continue
		}
		if request, ok := c.queue.get(); ok {
			p.begin(c, request)
			return true
		}
	}
	return false
}

func (p *Process) begin(controller *controllerRun, request reconcile.Request) {
	controller.running++
	c := &call{controller: controller, request: request}
	c.resume, c.stop = iter.Pull(func(yield func(time.Duration) bool) {
		c.yield, c.goroutine = yield, goroutine()
		c.result, c.err = controller.declaration.Reconciler.Reconcile(p.context(), request)
	})
	p.step(c)
}

// step runs a reconcile until it ends or stalls.
func (p *Process) step(c *call) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(crash); !ok {
				panic(r)
			}
			p.crashed()
		}
	}()
	p.current = c
	d, stalls := c.resume()
	p.current = nil
	if stalls {
		c.wakeAt = p.world.now.Add(d)
		p.stalled = append(p.stalled, c)
		return
	}
	c.controller.running--
	p.finish(c)
}

func (p *Process) crashed() {
	p.Kill()
	if p.program.OnCrash != nil {
		p.program.OnCrash()
	}
}

// finish handles the result of a reconcile like controller-runtime.
func (p *Process) finish(c *call) {
	if p.program.Reconciled != nil {
		p.program.Reconciled(c.request, c.result, c.err)
	}
	q := c.controller.queue
	switch {
	case c.err != nil:
		p.world.Logf("%s reconciles %s: %v", p.program.Name, c.request, c.err)
		q.addAfter(c.request, q.limiter.When(c.request))
	case c.result.RequeueAfter > 0:
		q.limiter.Forget(c.request)
		q.addAfter(c.request, c.result.RequeueAfter)
	default:
		q.limiter.Forget(c.request)
	}
	q.done(c.request)
}

// stall suspends the reconcile that makes a request. Requests from other goroutines cannot be
// suspended; for them, time passes immediately.
func (p *Process) stall(d time.Duration) {
	c := p.current
	if c == nil || c.goroutine != goroutine() {
		p.world.Advance(d)
		return
	}
	if !c.yield(d) || p.dead {
		panic(crash{})
	}
	p.current = c
}

// goroutine returns the ID of the current goroutine.
func goroutine() string {
	var buffer [64]byte
	return string(bytes.Fields(buffer[:runtime.Stack(buffer[:], false)])[1])
}

// cachedSource serves reads from the caches. Reading a kind that no controller declares is an
// error.
func (p *Process) cachedSource() objects.Source {
	find := func(gvk schema.GroupVersionKind) (*informer, error) {
		gvr, _ := meta.UnsafeGuessKindToResource(gvk)
		for _, i := range p.informers {
			if i.gvr == gvr {
				return i, nil
			}
		}
		return nil, fmt.Errorf("no controller of %s declares that it reads %s from the cache", p.program.Name, gvk.Kind)
	}
	return objects.Source{
		Scheme: p.world.scheme,
		Copy:   copyInto,
		Find: func(gvk schema.GroupVersionKind, key client.ObjectKey) (client.Object, error) {
			i, err := find(gvk)
			if err != nil || i.objects[key] == nil {
				return nil, err
			}
			return i.objects[key], nil
		},
		FindAll: func(gvk schema.GroupVersionKind, namespace string) ([]client.Object, error) {
			i, err := find(gvk)
			if err != nil {
				return nil, err
			}
			return i.sorted(namespace), nil
		},
	}
}

// cachedClient reads from caches and writes to the API server.
type cachedClient struct {
	client.WithWatch
	reads client.Reader
}

// Get reads from the cache.
func (c *cachedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.reads.Get(ctx, key, obj, opts...)
}

// List reads from the cache like controller-runtime: lists cannot be continued, a limit truncates
// the list, and every list claims to have a continuation.
func (c *cachedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if options.Continue != "" {
		return errors.New("continue list option is not supported by the cache")
	}
	if err := c.reads.List(ctx, list, opts...); err != nil {
		return err
	}
	if limit := int(options.Limit); limit > 0 && meta.LenList(list) > limit {
		items, err := meta.ExtractList(list)
		if err != nil {
			return err
		}
		if err := meta.SetList(list, items[:limit]); err != nil {
			return err
		}
	}
	list.SetContinue("continue-not-supported")
	return nil
}
