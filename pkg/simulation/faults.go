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

// Outcome describes what becomes of a request.
type Outcome int

// The outcomes of a request.
const (
	// Serve serves the request.
	Serve Outcome = iota
	// Refuse answers with Fault.Err, or with an internal error, and changes nothing.
	Refuse
	// LoseAnswer serves the request and answers with a timeout.
	LoseAnswer
	// Conflict answers that the object was modified, and changes nothing.
	Conflict
	// CrashBefore ends the process before the request reaches the API server.
	CrashBefore
	// CrashAfter ends the process after the request was served.
	CrashAfter
	// Stall suspends the process for Fault.For before the request is served. Everything else goes on in that time,
	// other processes of the same program included.
	Stall
)

// Fault describes what a Plan decides for a request. The zero Fault serves it.
type Fault struct {
	Outcome Outcome
	// Err is the answer of Refuse.
	Err error
	// For is how long Stall takes.
	For time.Duration
	// Lag lists kinds of which the caches of the process receive nothing for LagFor.
	Lag    []string
	LagFor time.Duration
}

// Plan decides what becomes of each request of a process. It may act on the world by the clients of
// others, so they come between a read and a write.
type Plan func(Request) Fault

// FaultyClient returns a client of an actor whose requests fail by a plan, for code that runs
// without a process. It reads from the API server. The outcomes are Serve, Refuse, LoseAnswer, and
// Conflict; others serve the request.
func (w *World) FaultyClient(actor string, plan Plan) client.WithWatch {
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

// serve answers a request that does not end the process.
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

// crash ends a reconcile whose process has crashed.
type crash struct{}

// gate applies the plan of the program to a request of this life.
func (p *Process) gate(cached bool) gate {
	return func(request Request, do func() error) error {
		if p.dead {
			panic(crash{})
		}
		request.Process, request.Life, request.Cached, request.Time = p.name, p.life, cached, p.world.now
		p.counters.count(&request)
		var fault Fault
		if p.plan != nil {
			fault = p.plan(request)
		}
		if fault.Outcome != Serve {
			p.world.Logf("%s %s: fault %d", p.name, request, fault.Outcome)
		}
		for _, kind := range fault.Lag {
			p.Lag(kind, fault.LagFor)
		}
		return p.serve(request, fault, do)
	}
}

func (p *Process) serve(request Request, fault Fault, do func() error) error {
	if !request.Cached && request.IsWrite() {
		p.world.Advance(p.latency)
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
