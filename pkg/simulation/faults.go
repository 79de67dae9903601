// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Outcome is the outcome of a request.
type Outcome int

// Outcomes of a request.
const (
	// Serve serves the request.
	Serve Outcome = iota
	// Refuse returns Fault.Err, or an internal error by default, and changes nothing.
	Refuse
	// LoseAnswer serves the request but returns a timeout.
	LoseAnswer
	// Conflict returns a conflict and changes nothing.
	Conflict
	// CrashBefore ends the process before the request reaches the API server.
	CrashBefore
	// CrashAfter ends the process after the request has been served.
	CrashAfter
	// Stall suspends the process for Fault.For before the request is served. Everything else continues
	// during that time, including other processes of the same program.
	Stall
)

// Fault is a FaultPlan's decision about a request. The zero value serves the request.
type Fault struct {
	Outcome Outcome
	// Err is the error for Refuse.
	Err error
	// For is the duration of Stall.
	For time.Duration
	// Lag lists kinds whose changes do not reach the process's caches for LagFor.
	Lag    []string
	LagFor time.Duration
}

// If returns a plan that applies the fault to matching requests and serves all others.
func (f Fault) If(matches func(Request) bool) FaultPlan {
	return func(r Request) Fault {
		if matches(r) {
			return f
		}
		return Fault{}
	}
}

// FaultPlan determines the outcome of each request of a process. It may change the world with other
// clients, between a read and a write of the process.
type FaultPlan func(Request) Fault

// FaultyClient returns a client for code that runs without a process. Its requests fail according
// to a plan, and it reads from the API server. It supports the outcomes Serve, Refuse, LoseAnswer,
// and Conflict; all others serve the request.
func (w *World) FaultyClient(actor string, plan FaultPlan) client.WithWatch {
	var counted counters
	return w.client(actor, w.live(), func(request Request, do func() error) error {
		request.Process, request.Time = actor, w.now
		counted.count(&request)
		return plan(request).serve(request, do)
	})
}

// count numbers a request.
func (c *counters) count(request *Request) {
	c.requests++
	request.Number = c.requests
	if request.IsWrite() {
		c.writes++
		request.Write = c.writes
	}
}

// serve serves a request whose outcome does not end the process.
func (f Fault) serve(request Request, do func() error) error {
	switch f.Outcome {
	case Refuse:
		if f.Err != nil {
			return f.Err
		}
		return apierrors.NewInternalError(errors.New("refused by the simulation"))
	case Conflict:
		return apierrors.NewConflict(schema.GroupResource{Resource: request.Kind}, request.Key.Name, errors.New("conflict by the simulation"))
	case LoseAnswer:
		if err := do(); err != nil {
			return err
		}
		return apierrors.NewTimeoutError("the answer is lost by the simulation", 1)
	default:
		return do()
	}
}

// crash unwinds a reconcile whose process has crashed.
type crash struct{}

// gate applies the program's plan to the requests of this life.
func (p *Process) gate(cached bool) gate {
	return func(request Request, do func() error) error {
		if p.dead {
			panic(crash{})
		}
		request.Process, request.Life, request.Cached, request.Time = p.program.Name, p.life, cached, p.world.now
		p.program.counters.count(&request)
		var fault Fault
		if p.program.Plan != nil {
			fault = p.program.Plan(request)
		}
		if fault.Outcome != Serve {
			p.world.Logf("%s %s: fault %d", p.program.Name, request, fault.Outcome)
		}
		for _, kind := range fault.Lag {
			p.Lag(kind, fault.LagFor)
		}
		return p.serve(request, fault, do)
	}
}

func (p *Process) serve(request Request, fault Fault, do func() error) error {
	if !request.Cached && request.IsWrite() {
		p.world.Advance(p.program.Latency)
	}
	switch fault.Outcome {
	case CrashBefore:
		panic(crash{})
	case CrashAfter:
		_ = do()
		panic(crash{})
	case Stall:
		p.stall(fault.For)
	case Serve, Refuse, LoseAnswer, Conflict:
	}
	return fault.serve(request, do)
}
