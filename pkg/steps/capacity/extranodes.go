// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// The names of extra MachineSets are derived from the names of the other MachineSets. They are
// unknown when permissions are granted, so the permissions cover all MachineSets of the namespace.
//
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machinesets,namespace=openshift-machine-api,verbs=list;create;patch;delete
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machines,namespace=openshift-machine-api,verbs=list

// ExtraNodes adds and removes nodes. It is created once and used in every pass, so it can limit
// reads of the API server however often a step is called.
type ExtraNodes struct {
	// Client reads nodes from the cache and writes to the API server.
	Client client.Client
	// Live reads MachineSets and Machines from the API server. They matter only for a few minutes
	// of an upgrade, so caching them all year is not worthwhile.
	Live client.Reader

	throttle engine.Throttle
}

const (
	reasonNotConfigured = "NotConfigured"        // no extra nodes are requested
	reasonNothingToAdd  = "NothingToAdd"         // no MachineSet of workers exists
	reasonAdding        = "AddingNodes"          // the nodes are not ready yet
	reasonNotAvailable  = "CapacityNotAvailable" // some nodes are not ready, and the upgrade continues without them
	reasonRemoving      = "RemovingNodes"        // the nodes are not gone yet
	reasonNotRemoved    = "NotRemoved"           // some nodes are not gone, and the cleanup continues
)

// cleanupGrace is how long after the timeout Add retries deleting MachineSets that did not become
// ready.
const cleanupGrace = time.Minute

// Add waits until one extra node is ready for each MachineSet of workers. It is skipped as
// CapacityNotAvailable if some are not ready within the timeout or when the step must yield to the
// window. The extra nodes that are not ready are then deleted, because they would keep their pool
// from being updated. The others stay.
func (e *ExtraNodes) Add(attempt engine.AttemptRef, enabled bool, timeout time.Duration) engine.UpgradeStep {
	if !enabled {
		return func(context.Context, engine.Run) (engine.Result, error) {
			return engine.Skip(reasonNotConfigured, "spec.capacityReservation does not request extra nodes"), nil
		}
	}
	add := e.limit("add "+attempt.UID+" "+attempt.ID(), func(ctx context.Context, run engine.Run) (engine.Result, error) {
		end, within := endOfAdd(run, timeout)
		result, err := e.add(ctx, attempt, run.Now.Before(end))
		if err != nil && !run.Now.Before(end.Add(cleanupGrace)) {
			return engine.Skip(reasonNotAvailable, "not determined %s: %v", within, err), nil
		}
		return result, err
	})
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		result, err := add(ctx, run)
		if result.Passed() {
			return result, err
		}
		end, _ := endOfAdd(run, timeout)
		return result.NoLaterThan(end.Sub(run.Now)), err
	}
}

// endOfAdd returns when Add stops waiting, and a phrase for that in messages.
func endOfAdd(run engine.Run, timeout time.Duration) (end time.Time, within string) {
	end, within = run.Since.Add(timeout), "within "+timeout.String()
	if yield := run.YieldAt(); !yield.IsZero() && yield.Before(end) {
		end, within = yield, "shortly before the window closes"
	}
	return end, within
}

// Limits of the interval between two polls of a waiting step. The interval is a quarter of the
// step's running time.
const (
	minPollInterval = time.Second
	maxPollInterval = 15 * time.Second
)

// limit limits how often poll is called, and caches its results by step.
func (e *ExtraNodes) limit(step string, poll engine.UpgradeStep) engine.UpgradeStep {
	interval := func(elapsed time.Duration) time.Duration {
		return min(max(elapsed/4, minPollInterval), maxPollInterval)
	}
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		return e.throttle.Step(step, interval, poll)(ctx, run)
	}
}

// add creates missing extra MachineSets and deletes surplus ones. After the timeout, it creates
// none and deletes the ones without a ready node.
func (e *ExtraNodes) add(ctx context.Context, attempt engine.AttemptRef, withinTimeout bool) (engine.Result, error) {
	all, err := e.machineSets(ctx)
	if err != nil {
		return engine.Result{}, err
	}
	extras, err := desired(all, attempt)
	if err != nil {
		return engine.Result{}, err
	}
	if err := e.delete(ctx, orphaned(all, extras)...); err != nil {
		return engine.Result{}, err
	}
	if len(extras) == 0 {
		return engine.Skip(reasonNothingToAdd, "no MachineSet of workers in namespace %s has a machine", Namespace), nil
	}
	state, err := e.readMachineState(ctx, attempt)
	if err != nil {
		return engine.Result{}, err
	}
	var ready, missing []string
	var idle []machineSet
	for _, extra := range extras {
		node, reason := e.ensure(ctx, extra, state, withinTimeout)
		if reason == "" {
			ready = append(ready, node)
			continue
		}
		missing = append(missing, fmt.Sprintf("%s (%s)", extra.source, reason))
		if extra.actual != nil && extra.actual.isExtra() {
			idle = append(idle, *extra.actual)
		}
	}
	if len(missing) == 0 {
		return engine.Done("extra nodes ready: %s", text.JoinNames(ready)), nil
	}
	message := fmt.Sprintf("%d of %d extra nodes are ready; MachineSets without one: %s", len(ready), len(extras), text.JoinNames(missing))
	if withinTimeout {
		return engine.Wait(reasonAdding, "%s", message), nil
	}
	if err := e.delete(ctx, idle...); err != nil {
		return engine.Result{}, fmt.Errorf("%s: %w", message, err)
	}
	return engine.Skip(reasonNotAvailable, "%s; the upgrade continues", message), nil
}

// ensure returns the ready node of an extra MachineSet, or the reason why it has none. It creates a
// missing MachineSet. After the timeout, it only determines with a dry run why the MachineSet could
// not be created.
func (e *ExtraNodes) ensure(ctx context.Context, extra extra, state machineState, withinTimeout bool) (node, reason string) {
	switch {
	case extra.actual == nil && withinTimeout:
		if err := e.apply(ctx, extra); err != nil {
			return "", text.Reason(err.Error())
		}
		return "", "its extra MachineSet was only just created"
	case extra.actual == nil:
		if err := e.apply(ctx, extra, client.DryRunAll); err != nil {
			return "", text.Reason(err.Error())
		}
		return "", "its extra MachineSet was not created in time"
	case !extra.actual.isExtra():
		return "", fmt.Sprintf("MachineSet %s exists and was not created by the operator", extra.name)
	case extra.actual.deleting():
		return "", fmt.Sprintf("its extra MachineSet %s is being deleted", extra.name)
	}
	return state.nodeOf(*extra.actual)
}

// Remove waits until all extra nodes of all upgrades are gone.
func (e *ExtraNodes) Remove() engine.UpgradeStep {
	return e.limit("remove", func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		return e.remove(ctx)
	})
}

// RemoveWithin is like Remove, but for a cleanup. It is skipped as NotRemoved if nodes remain after
// the timeout. Their removal continues.
func (e *ExtraNodes) RemoveWithin(timeout time.Duration) engine.UpgradeStep {
	return e.limit("remove within", func(ctx context.Context, run engine.Run) (engine.Result, error) {
		result, err := e.remove(ctx)
		switch timedOut := run.Now.Sub(run.Since) >= timeout; {
		case timedOut && err != nil:
			return engine.Skip(reasonNotRemoved, "not removed within %s: %v", timeout, err), nil
		case timedOut && !result.Passed():
			return engine.Skip(reasonNotRemoved, "not gone within %s: %s", timeout, result.Message()), nil
		}
		return result, err
	})
}

// RemoveNow deletes the extra MachineSets of all attempts of an object, without waiting for their
// removal. Extra MachineSets of other objects stay, because they may belong to an upgrade in
// progress.
func (e *ExtraNodes) RemoveNow(ctx context.Context, attempt engine.AttemptRef) error {
	sets, err := e.machineSets(ctx, client.MatchingLabels{clusterstate.LabelExtraNodeOf: attempt.UID})
	if err != nil {
		return err
	}
	return e.delete(ctx, sets...)
}

// remove deletes all extra MachineSets, and reports whether they and their nodes are gone. A
// MachineSet exists until its Machines are gone.
func (e *ExtraNodes) remove(ctx context.Context) (engine.Result, error) {
	sets, err := e.machineSets(ctx, client.HasLabels{clusterstate.LabelExtraNodeOf})
	if err != nil {
		return engine.Result{}, err
	}
	if err := e.delete(ctx, sets...); err != nil {
		return engine.Result{}, err
	}
	var nodes corev1.NodeList
	if err := e.Client.List(ctx, &nodes, client.HasLabels{clusterstate.LabelExtraNodeOf}, client.UnsafeDisableDeepCopy); err != nil {
		return engine.Result{}, fmt.Errorf("listing the extra nodes: %w", err)
	}
	var remaining []string
	for i := range nodes.Items {
		remaining = append(remaining, "node "+text.WithReason(nodes.Items[i].Name, drainStatus(&nodes.Items[i])))
	}
	for _, set := range sets {
		remaining = append(remaining, "MachineSet "+set.GetName())
	}
	if len(remaining) > 0 {
		return engine.Wait(reasonRemoving, "being removed: %s", text.JoinNames(remaining)), nil
	}
	return engine.Done("no extra node is left"), nil
}

// drainStatus describes how long a node has been draining, or returns "" if it is not.
func drainStatus(node *corev1.Node) string {
	drain := clusterstate.DrainState(node)
	if !drain.Active {
		return ""
	}
	return strings.TrimSpace("being drained " + text.FormatSince(drain.Since))
}
