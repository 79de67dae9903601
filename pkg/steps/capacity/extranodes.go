// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// The names of extra MachineSets follow from those of the others, which nobody
// knows when permissions are given: so these are for all in the namespace.
//
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machinesets,namespace=openshift-machine-api,verbs=list;create;patch;delete
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machines,namespace=openshift-machine-api,verbs=list

// ExtraNodes adds nodes and removes them. It is made once and used for every
// look: it remembers the last one, so that the API server is asked at a pace of
// its own, however often it is looked.
type ExtraNodes struct {
	// Client reads nodes from the cache, and writes to the API server.
	Client client.Client
	// Live reads MachineSets and Machines from the API server: they matter for
	// some minutes of an upgrade, so no cache keeps them up to date all year.
	Live client.Reader

	mutex sync.Mutex
	cache cachedResult
}

const (
	reasonNotConfigured = "NotConfigured"        // nobody asks for extra nodes
	reasonNothingToAdd  = "NothingToAdd"         // there is no MachineSet of workers
	reasonAdding        = "AddingNodes"          // they are not ready yet
	reasonNotAvailable  = "CapacityNotAvailable" // some are not ready, and the upgrade goes on without them
	reasonRemoving      = "RemovingNodes"        // they are not gone yet
	reasonNotRemoved    = "NotRemoved"           // some are not gone, and the clean-up goes on
)

// cleanupGrace is for how long after the timeout it is tried to take back what has not come.
const cleanupGrace = time.Minute

// Add waits until one extra node is ready for each MachineSet of workers. It
// is skipped, as CapacityNotAvailable, if some are not within the timeout: then
// those are taken back, since a node that is not ready would keep its pool from
// being updated, and the others stay.
func (e *ExtraNodes) Add(attempt engine.AttemptRef, enabled bool, timeout time.Duration) engine.UpgradeStep {
	if !enabled {
		return func(context.Context, engine.Run) (engine.Result, error) {
			return engine.Skip(reasonNotConfigured, "spec.capacityReservation does not ask for extra nodes"), nil
		}
	}
	return e.rateLimited("added "+attempt.UID+" "+attempt.ID(), func(ctx context.Context, run engine.Run) (engine.Result, error) {
		elapsed := run.Now.Sub(run.Since)
		result, err := e.add(ctx, attempt, elapsed < timeout)
		if err != nil && elapsed >= timeout+cleanupGrace {
			return engine.Skip(reasonNotAvailable, "not found out within %s: %v", timeout, err), nil
		}
		return result, err
	})
}

// add takes a look, and makes and deletes what it takes. When it is too late,
// nothing is made any more, and what is not ready is deleted.
func (e *ExtraNodes) add(ctx context.Context, attempt engine.AttemptRef, withinTimeout bool) (engine.Result, error) {
	all, err := e.machineSets(ctx)
	if err != nil {
		return engine.Result{}, err
	}
	extras := desired(all, attempt)
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
	return engine.Skip(reasonNotAvailable, "%s; the upgrade goes on", message), nil
}

// ensure says which node an extra MachineSet has, or why none is ready. A
// MachineSet that lacks is made; when it is too late for that, the API server
// is only asked why it could not be.
func (e *ExtraNodes) ensure(ctx context.Context, extra extra, state machineState, withinTimeout bool) (node, reason string) {
	switch {
	case extra.actual == nil && withinTimeout:
		if err := e.apply(ctx, extra); err != nil {
			return "", text.Reason(err.Error())
		}
		return "", "its extra one was made just now"
	case extra.actual == nil:
		if err := e.apply(ctx, extra, client.DryRunAll); err != nil {
			return "", text.Reason(err.Error())
		}
		return "", "its extra one was not made in time"
	case !extra.actual.isExtra():
		return "", fmt.Sprintf("a MachineSet %s is there, and is not ours", extra.name)
	case extra.actual.deleting():
		return "", fmt.Sprintf("its extra one, %s, is being deleted", extra.name)
	}
	return state.nodeOf(*extra.actual)
}

// Remove waits until no node is there that was added, for whatever upgrade.
func (e *ExtraNodes) Remove() engine.UpgradeStep {
	return e.rateLimited("removed", func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		return e.remove(ctx)
	})
}

// RemoveWithin is Removed for a clean-up: it is skipped, as NotRemoved, if it is
// not over when patience is. What was deleted goes on being removed.
func (e *ExtraNodes) RemoveWithin(timeout time.Duration) engine.UpgradeStep {
	return e.rateLimited("all removed", func(ctx context.Context, run engine.Run) (engine.Result, error) {
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

// RemoveNow deletes all extra MachineSets, and does not wait until they are gone.
func (e *ExtraNodes) RemoveNow(ctx context.Context) error {
	_, err := e.remove(ctx)
	return err
}

// remove deletes all extra MachineSets, and looks whether they and their nodes
// are gone. A MachineSet is there for as long as its Machines are.
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

// drainStatus says since when a node is being drained; empty: it is not.
func drainStatus(node *corev1.Node) string {
	drain := clusterstate.DrainState(node)
	if !drain.Active {
		return ""
	}
	return strings.TrimSpace("being drained " + text.FormatSince(drain.Since))
}
