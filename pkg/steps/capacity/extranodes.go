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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
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
	last  memory
}

const (
	reasonNotConfigured = "NotConfigured"        // nobody asks for extra nodes
	reasonNothingToAdd  = "NothingToAdd"         // there is no MachineSet of workers
	reasonAdding        = "AddingNodes"          // they are not ready yet
	reasonNotAvailable  = "CapacityNotAvailable" // some are not ready, and the upgrade goes on without them
	reasonRemoving      = "RemovingNodes"        // they are not gone yet
	reasonNotRemoved    = "NotRemoved"           // some are not gone, and the clean-up goes on
)

// grace is for how long after the timeout it is tried to take back what has not come.
const grace = time.Minute

// Added waits until one extra node is ready for each MachineSet of workers. It
// is skipped, as CapacityNotAvailable, if some are not within the timeout: then
// those are taken back, since a node that is not ready would keep its pool from
// being updated, and the others stay.
func (e *ExtraNodes) Added(about engine.Subject, wanted bool, timeout time.Duration) engine.UpgradeStep {
	if !wanted {
		return func(context.Context, engine.Run) (engine.Result, error) {
			return engine.Skip(reasonNotConfigured, "spec.capacityReservation does not ask for extra nodes"), nil
		}
	}
	return e.paced("added "+about.UID+" "+about.Key(), func(ctx context.Context, run engine.Run) (engine.Result, error) {
		tried := run.Now.Sub(run.Since)
		result, err := e.add(ctx, about, tried < timeout)
		if err != nil && tried >= timeout+grace {
			return engine.Skip(reasonNotAvailable, "not found out within %s: %v", timeout, err), nil
		}
		return result, err
	})
}

// add takes a look, and makes and deletes what it takes. When it is too late,
// nothing is made any more, and what is not ready is deleted.
func (e *ExtraNodes) add(ctx context.Context, about engine.Subject, inTime bool) (engine.Result, error) {
	all, err := e.machineSets(ctx)
	if err != nil {
		return engine.Result{}, err
	}
	extras := wanted(all, about)
	if err := e.delete(ctx, stale(all, extras)...); err != nil {
		return engine.Result{}, err
	}
	if len(extras) == 0 {
		return engine.Skip(reasonNothingToAdd, "no MachineSet of workers in namespace %s has a machine", Namespace), nil
	}
	facts, err := e.facts(ctx, about)
	if err != nil {
		return engine.Result{}, err
	}
	var ready, missing []string
	var idle []machineSet
	for _, extra := range extras {
		node, why := e.ensure(ctx, extra, facts, inTime)
		if why == "" {
			ready = append(ready, node)
			continue
		}
		missing = append(missing, fmt.Sprintf("%s (%s)", extra.beside, why))
		if extra.found != nil && extra.found.ours() {
			idle = append(idle, *extra.found)
		}
	}
	if len(missing) == 0 {
		return engine.Done("extra nodes ready: %s", cluster.Names(ready)), nil
	}
	message := fmt.Sprintf("%d of %d extra nodes are ready; MachineSets without one: %s", len(ready), len(extras), cluster.Names(missing))
	if inTime {
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
func (e *ExtraNodes) ensure(ctx context.Context, extra extra, facts facts, inTime bool) (node, why string) {
	switch {
	case extra.found == nil && inTime:
		if err := e.apply(ctx, extra); err != nil {
			return "", cluster.Brief(err.Error())
		}
		return "", "its extra one was made just now"
	case extra.found == nil:
		if err := e.apply(ctx, extra, client.DryRunAll); err != nil {
			return "", cluster.Brief(err.Error())
		}
		return "", "its extra one was not made in time"
	case !extra.found.ours():
		return "", fmt.Sprintf("a MachineSet %s is there, and is not ours", extra.name)
	case extra.found.deleting():
		return "", fmt.Sprintf("its extra one, %s, is being deleted", extra.name)
	}
	return facts.nodeOf(*extra.found)
}

// Removed waits until no node is there that was added, for whatever upgrade.
func (e *ExtraNodes) Removed() engine.UpgradeStep {
	return e.paced("removed", func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		return e.remove(ctx)
	})
}

// AllRemoved is Removed for a clean-up: it is skipped, as NotRemoved, if it is
// not over when patience is. What was deleted goes on being removed.
func (e *ExtraNodes) AllRemoved(patience time.Duration) engine.UpgradeStep {
	return e.paced("all removed", func(ctx context.Context, run engine.Run) (engine.Result, error) {
		result, err := e.remove(ctx)
		switch late := run.Now.Sub(run.Since) >= patience; {
		case late && err != nil:
			return engine.Skip(reasonNotRemoved, "not removed within %s: %v", patience, err), nil
		case late && !result.Passed():
			return engine.Skip(reasonNotRemoved, "not gone within %s: %s", patience, result.Message()), nil
		}
		return result, err
	})
}

// Abandoned deletes all extra MachineSets, and does not wait until they are gone.
func (e *ExtraNodes) Abandoned(ctx context.Context) error {
	_, err := e.remove(ctx)
	return err
}

// remove deletes all extra MachineSets, and looks whether they and their nodes
// are gone. A MachineSet is there for as long as its Machines are.
func (e *ExtraNodes) remove(ctx context.Context) (engine.Result, error) {
	sets, err := e.machineSets(ctx, client.HasLabels{cluster.LabelExtra})
	if err != nil {
		return engine.Result{}, err
	}
	if err := e.delete(ctx, sets...); err != nil {
		return engine.Result{}, err
	}
	var nodes corev1.NodeList
	if err := e.Client.List(ctx, &nodes, client.HasLabels{cluster.LabelExtra}, client.UnsafeDisableDeepCopy); err != nil {
		return engine.Result{}, fmt.Errorf("listing the extra nodes: %w", err)
	}
	var left []string
	for i := range nodes.Items {
		left = append(left, "node "+cluster.Because(nodes.Items[i].Name, drained(&nodes.Items[i])))
	}
	for _, set := range sets {
		left = append(left, "MachineSet "+set.GetName())
	}
	if len(left) > 0 {
		return engine.Wait(reasonRemoving, "being removed: %s", cluster.Names(left)), nil
	}
	return engine.Done("no extra node is left"), nil
}

// drained says since when a node is being drained; empty: it is not.
func drained(node *corev1.Node) string {
	drain := cluster.DrainOf(node)
	if !drain.Running {
		return ""
	}
	return strings.TrimSpace("being drained " + cluster.Since(drain.Since))
}
