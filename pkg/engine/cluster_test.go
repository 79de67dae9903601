// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// target is the version of the simulated upgrade.
const target = "4.4.6"

// cluster is a world with a small cluster, and a runbook that upgrades it within two hours.
type cluster struct {
	*world
	window       time.Time
	pauseReason  string
	cancelReason string
	facts
	renewals int // how often the silence was renewed
	ready    bool
}

// facts are the state of the cluster after an upgrade.
type facts struct {
	Channel      string
	Offered      bool
	Unhealthy    string // the problem, or empty
	ExtraNode    bool
	Desired      string
	DesiredSet   int // number of requests for the target
	Accepted     bool
	ControlPlane string
	Workers      string
	Notified     []string
}

func newCluster(t tester) *cluster {
	c := &cluster{world: newWorld(t), window: noon.Add(30 * time.Minute)}
	c.ControlPlane, c.Workers = "4.4.5", "4.4.5"
	c.book = c.runbook
	c.constraints = func() engine.Constraints {
		return engine.Constraints{CommitBy: c.window, Hold: c.pauseReason, Cancel: c.cancelReason}
	}
	return c
}

// notify receives a notification, possibly a repeated one.
func (c *cluster) notify(what string) {
	if !slices.Contains(c.Notified, what) {
		c.Notified = append(c.Notified, what)
	}
}

// runbook returns a table like a real one: each step observes before it acts, and waits until it
// observes what it requested.
func (c *cluster) runbook() engine.Runbook {
	notification := func(what string) engine.UpgradeStep {
		return func(context.Context, engine.Run) (engine.Result, error) {
			c.notify(what)
			return engine.Done("sent"), nil
		}
	}
	healthy := func(context.Context, engine.Run) (engine.Result, error) {
		if c.Unhealthy != "" {
			return engine.Wait("Unhealthy", "%s", c.Unhealthy), nil
		}
		return engine.Done("the cluster is healthy"), nil
	}
	is := func(so *string) func(context.Context) (bool, error) {
		return func(context.Context) (bool, error) { return *so == target, nil }
	}
	return engine.Runbook{
		Steps: []engine.Step{
			{Name: "StartedNotificationSent", Doc: "Sends the notification about the start.", Do: notification("started")},
			{Name: "VersionPinned", Doc: "Sets the channel.", Do: c.setChannel},
			{Name: "PreHealthCheck", Doc: "Checks the health.", Do: healthy},
			{Name: "ExtraNodeReady", Doc: "Adds a node.", Do: c.addNode, SlowAfter: 2 * time.Minute},
			{
				Name: "CommenceUpgrade", Doc: "Requests the target.", Do: c.commence, Gates: []engine.Gate{{Name: "Healthy", Check: healthy}},
				Commit: committing(func(context.Context) (bool, error) { return c.Accepted, nil }),
			},
			{
				Name: "ControlPlaneUpgraded", Doc: "Waits for the control plane.", Do: engine.FromBool(is(&c.ControlPlane)),
				Reached: is(&c.ControlPlane), SlowAfter: time.Hour, FailAfter: 3 * time.Hour,
			},
			{Name: "WorkersUpgraded", Doc: "Waits for the workers.", Do: engine.FromBool(is(&c.Workers)), KeepAlive: []engine.KeepAlive{{Name: "Silence", Renew: c.renew}}},
			{
				Name: "PostHealthCheck", Doc: "Checks the health.", Do: healthy, FailAfter: 2 * time.Hour, FailReason: "Unhealthy",
				Reached: func(context.Context) (bool, error) { return c.Unhealthy == "", nil },
			},
			{Name: "ExtraNodeRemoved", Doc: "Removes the node.", Do: c.removeNode},
			{Name: "CompletedNotificationSent", Doc: "Sends the notification about the end.", Do: notification("completed")},
		},
		Cleanup: []engine.Step{
			{Name: "TargetWithdrawn", Doc: "Withdraws the request.", Do: c.withdraw},
			{Name: "ExtraNodeGone", Doc: "Removes the node.", Do: c.removeNode},
			{Name: "FailureNotificationSent", Doc: "Sends the notification about the failure.", Do: notification("failed")},
		},
	}
}

func (c *cluster) setChannel(context.Context, engine.Run) (engine.Result, error) {
	if c.Channel == "" {
		c.Channel = "stable-4.4"
		c.after(2*time.Minute, func() { c.Offered = true })
	}
	if !c.Offered {
		return engine.Wait("NotOffered", "%s is not offered yet", target), nil
	}
	return engine.Done("%s is offered", target), nil
}

func (c *cluster) addNode(context.Context, engine.Run) (engine.Result, error) {
	if !c.ExtraNode {
		c.ExtraNode, c.ready = true, false
		c.after(3*time.Minute, func() { c.ready = true })
	}
	if !c.ready {
		return engine.WaitFor(30*time.Second, "NodeComing", "the extra node is not ready yet"), nil
	}
	return engine.Done("the extra node is ready"), nil
}

func (c *cluster) removeNode(context.Context, engine.Run) (engine.Result, error) {
	c.ExtraNode = false
	return engine.Done("there is no extra node"), nil
}

func (c *cluster) commence(context.Context, engine.Run) (engine.Result, error) {
	if c.Desired != target {
		c.Desired = target
		c.DesiredSet++
		c.after(time.Minute, func() {
			if c.Desired != target {
				return // withdrawn in the meantime
			}
			c.Accepted = true
			c.after(40*time.Minute, func() { c.ControlPlane = target })
			c.after(100*time.Minute, func() { c.Workers = target })
		})
	}
	if !c.Accepted {
		return engine.Wait("Requested", "requested %s", target), nil
	}
	return engine.Done("%s was accepted", target), nil
}

func (c *cluster) renew(context.Context, engine.Run) (engine.Result, error) {
	c.renewals++
	return engine.WaitFor(4*time.Minute, "Renewed", "the silence was renewed"), nil
}

func (c *cluster) withdraw(context.Context, engine.Run) (engine.Result, error) {
	if c.Accepted {
		return engine.Skip("Accepted", "%s was accepted already", target), nil
	}
	c.Desired = ""
	return engine.Done("withdrawn"), nil
}

// end is how an upgrade ended: the state of the cluster and the record.
type end struct {
	Facts  facts
	Record []string
}

func (c *cluster) end() end { return end{c.facts, lines(c.store.load())} }

// runUndisturbed returns the end of an upgrade without faults, and the number of its saves and
// calls.
func runUndisturbed(t *testing.T) (end end, saves, calls int) {
	t.Helper()
	c := newCluster(t)
	c.run()
	if c.Workers != target || len(c.calls) == 0 || fmt.Sprint(c.Notified) != "[started completed]" {
		t.Fatalf("an upgrade that nothing disturbs ends with %+v", c.end())
	}
	return c.end(), c.store.saves, len(c.calls)
}
