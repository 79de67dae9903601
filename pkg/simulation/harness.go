// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"os"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// Process is the newest life of the program.
	Process *Process
	// Plan decides what becomes of the requests of the program, and Writes of its writes in place of Plan. Nil serves
	// them.
	Plan, Writes Plan
	// Requests are the requests of the program to the API server.
	Requests []string
	// Describe returns the text of a request in Requests.
	Describe func(Request) string
}

// NewHarness returns a harness whose program has not started.
func NewHarness(tb testing.TB, options Options) *Harness {
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

// Create creates objects as a user.
func (h *Harness) Create(objects ...client.Object) {
	h.TB.Helper()
	for _, object := range objects {
		h.Must(h.User.Create(h.TB.Context(), object))
	}
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
