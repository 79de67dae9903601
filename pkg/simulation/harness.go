// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// Harness is a World in which a test runs one program. An error of its methods fails the test.
type Harness struct {
	*World
	TB testing.TB
	// User is the client of a user.
	User client.WithWatch
	// Program is the program under test. Unless the test changes it, the next life begins right after a crash.
	Program Program
	// Process is the newest life of the program, and Lives the number of all.
	Process *Process
	Lives   int
	// Registry has the metrics of the newest life.
	Registry *prometheus.Registry
	// Plan decides what becomes of the requests of the program, and Writes of its writes in place of Plan. Nil serves
	// them.
	Plan, Writes FaultPlan
	// Requests are the requests of the program to the API server.
	Requests []string
	// Describe returns the text of a request in Requests.
	Describe func(Request) string
}

// NewHarness returns a harness whose program has not started.
func NewHarness(tb testing.TB, options WorldOptions) *Harness {
	tb.Helper()
	h := &Harness{World: New(options), TB: tb, Describe: Request.String}
	h.User = h.Client("test")
	h.Program = Program{Name: "operator", Plan: h.decide, OnCrash: h.Begin}
	return h
}

// Run begins the first life of the program.
func (h *Harness) Run(controllers func(Env) ([]manager.Controller, error)) {
	h.TB.Helper()
	h.Program.Controllers = controllers
	h.Begin()
}

// Begin begins a life of the program.
func (h *Harness) Begin() {
	h.TB.Helper()
	h.Lives++
	h.Registry = prometheus.NewPedanticRegistry()
	process, err := h.Start(&h.Program)
	h.Must(err)
	h.Process = process
}

// Restart ends the life of the program and begins the next one.
func (h *Harness) Restart() {
	h.TB.Helper()
	h.Process.Kill()
	h.Begin()
}

// Must fails the test if there is an error.
func (h *Harness) Must(err error) {
	h.TB.Helper()
	if err != nil {
		h.TB.Fatal(err)
	}
}

// RunFor lets d pass.
func (h *Harness) RunFor(d time.Duration) {
	h.TB.Helper()
	h.Must(h.World.RunFor(d))
}

// RunTo lets time pass until then.
func (h *Harness) RunTo(at time.Time) {
	h.TB.Helper()
	h.RunFor(at.Sub(h.Now()))
}

// Await lets time pass until the condition holds, at most for a limit.
func (h *Harness) Await(limit time.Duration, done func() bool) {
	h.TB.Helper()
	h.Must(h.RunUntil(limit, done))
}

// Create creates objects as a user.
func (h *Harness) Create(objects ...client.Object) {
	h.TB.Helper()
	for _, object := range objects {
		h.Must(h.User.Create(h.TB.Context(), object))
	}
}

// Update replaces an object, except for its status, as a user.
func (h *Harness) Update(object client.Object) {
	h.TB.Helper()
	h.Must(h.User.Update(h.TB.Context(), object))
}

// UpdateStatus replaces the status of an object.
func (h *Harness) UpdateStatus(object client.Object) {
	h.TB.Helper()
	h.Must(h.User.Status().Update(h.TB.Context(), object))
}

// Delete deletes an object as a user.
func (h *Harness) Delete(object client.Object) {
	h.TB.Helper()
	h.Must(h.User.Delete(h.TB.Context(), object))
}

// Get reads a stored object into one and returns it.
func Get[T client.Object](h *Harness, key client.ObjectKey, into T) T {
	h.TB.Helper()
	h.Must(h.User.Get(h.TB.Context(), key, into))
	return into
}

// Find is Get, except that it returns nil if the object does not exist.
func Find[T client.Object](h *Harness, key client.ObjectKey, into T) T {
	h.TB.Helper()
	if err := h.User.Get(h.TB.Context(), key, into); !apierrors.IsNotFound(err) {
		h.Must(err)
		return into
	}
	var none T
	return none
}

// List reads the stored objects into a list and returns it.
func List[T client.ObjectList](h *Harness, into T, options ...client.ListOption) T {
	h.TB.Helper()
	h.Must(h.User.List(h.TB.Context(), into, options...))
	return into
}

// Edit reads an object again and changes it, except for its status, as a user.
func Edit[T client.Object](h *Harness, object T, change func(T)) {
	h.TB.Helper()
	change(Get(h, client.ObjectKeyFromObject(object), object))
	h.Update(object)
}

// Events returns the Events in the order in which they were written.
func (h *Harness) Events() []corev1.Event {
	h.TB.Helper()
	events := List(h, &corev1.EventList{}).Items
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return events
}

// Messages returns the messages of the Events that have a reason.
func (h *Harness) Messages(reason string) []string {
	h.TB.Helper()
	var messages []string
	for _, event := range h.Events() {
		if event.Reason == reason {
			messages = append(messages, event.Message)
		}
	}
	return messages
}

// Series returns the series of the newest life.
func (h *Harness) Series() []Series {
	h.TB.Helper()
	return Gather(h.TB, h.Registry)
}

// Dump returns the time, the latest requests, and the stored objects of a kind, for the message of a test that fails.
func (h *Harness) Dump(list client.ObjectList) string {
	h.TB.Helper()
	text, err := yaml.Marshal(List(h, list))
	h.Must(err)
	return fmt.Sprintf("at %s, after the requests %q:\n%s", h.Now(), h.Requests[max(0, len(h.Requests)-8):], text)
}

// Count returns how often the program made a request.
func (h *Harness) Count(request string) int {
	n := 0
	for _, r := range h.Requests {
		if r == request {
			n++
		}
	}
	return n
}

// JSON returns a value in JSON.
func JSON(tb testing.TB, value any) string {
	tb.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// decide records the requests to the API server and applies the plans.
func (h *Harness) decide(r Request) Fault {
	if !r.Cached || r.IsWrite() {
		h.Requests = append(h.Requests, h.Describe(r))
	}
	switch {
	case r.IsWrite() && h.Writes != nil:
		return h.Writes(r)
	case h.Plan != nil:
		return h.Plan(r)
	}
	return Fault{}
}

// Operation returns the verb, the kind, and the subresource of a request, such as "patch UpgradeJob/status".
func (r Request) Operation() string { return r.Verb + " " + r.what() }

var definitionsOf sync.Map // by folder

// DefinitionsIn is Definitions of a folder, which are compiled once.
func DefinitionsIn(tb testing.TB, folder string) []*Definition {
	tb.Helper()
	compiled, _ := definitionsOf.LoadOrStore(folder, sync.OnceValues(func() ([]*Definition, error) {
		return Definitions(os.DirFS(folder))
	}))
	definitions, err := compiled.(func() ([]*Definition, error))()
	if err != nil {
		tb.Fatal(err)
	}
	return definitions
}
