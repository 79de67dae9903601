// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/manifests"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/monitoring"
)

// runAction does one thing. The object is the one that the rule applies to; nil if it is not about one.
func (r *Run) runAction(ctx context.Context, action Action, object *unstructured.Unstructured) error {
	switch {
	case action.Patch != nil:
		return r.patch(ctx, *action.Patch, target(action.Patch.For, object))
	case action.Apply != nil:
		applied := &unstructured.Unstructured{Object: action.Apply}
		return manifests.Apply(ctx, r.objects, []*unstructured.Unstructured{applied.DeepCopy()})
	case action.Delete != nil:
		return client.IgnoreNotFound(r.objects.Delete(ctx, target(action.Delete, object)))
	case action.Release != nil:
		r.Cluster.Catalog.Set(*action.Release)
		return nil
	case action.Node != nil:
		r.node(*action.Node)
		return nil
	case action.Operator != "":
		return r.operator(ctx, action.Operator)
	case action.APIServer == stop:
		return r.Cluster.StopAPIServer()
	case action.APIServer == start:
		return r.Cluster.StartAPIServer(ctx)
	case action.Configure != nil:
		return r.configure(action.Configure)
	case action.Receiver == stop:
		return r.Cluster.Sink.Stop()
	case action.Receiver == start:
		return r.Cluster.Sink.Start()
	case action.Check != nil:
		return r.check(ctx, *action.Check)
	case action.requiresMonitoring():
		return monitor(ctx, action, r.Cluster.Monitoring)
	default:
		pause(ctx, time.Duration(action.Wait))
		return nil
	}
}

// What can be done to a server.
const (
	stop  = "stop"
	start = "start"
)

// requiresMonitoring says whether the action is one that a cluster without monitoring cannot do.
func (a Action) requiresMonitoring() bool {
	return a.Fire != nil || a.Resolve != "" || a.Prometheus != "" || a.Alertmanager != "" || a.Check != nil && a.Check.For.requiresMonitoring()
}

func monitor(ctx context.Context, action Action, running *monitoring.Monitoring) error {
	switch {
	case action.Fire != nil:
		return running.Fire(ctx, *action.Fire)
	case action.Resolve != "":
		return running.Resolve(ctx, action.Resolve)
	case action.Prometheus == stop:
		return running.StopPrometheus()
	case action.Prometheus == start:
		return running.StartPrometheus(ctx)
	case action.Alertmanager == stop:
		return running.StopAlertmanager()
	default:
		return running.StartAlertmanager(ctx)
	}
}

func (r *Run) configure(config map[string]any) error {
	text, err := configFile(config, r.addresses())
	if err != nil {
		return fmt.Errorf("writing the operator's configuration: %w", err)
	}
	return r.Operator.Configure(text)
}

func (r *Run) check(ctx context.Context, statement Statement) error {
	if problems := r.checkStatement(ctx, statement); len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

func target(named *Object, object *unstructured.Unstructured) *unstructured.Unstructured {
	if named != nil && *named != (Object{}) {
		return named.reference()
	}
	plain := &unstructured.Unstructured{}
	plain.SetGroupVersionKind(object.GroupVersionKind())
	plain.SetNamespace(object.GetNamespace())
	plain.SetName(object.GetName())
	return plain
}

func (r *Run) patch(ctx context.Context, patch Patch, object *unstructured.Unstructured) error {
	content := patch.With
	if len(patch.Conditions) > 0 {
		conditions, err := r.conditions(ctx, patch.Conditions, object)
		if err != nil {
			return err
		}
		content = map[string]any{}
		merge(content, patch.With)
		merge(content, map[string]any{"status": map[string]any{"conditions": conditions}})
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	merged := client.RawPatch(types.MergePatchType, encoded)
	if patch.Status || len(patch.Conditions) > 0 {
		err = r.objects.Status().Patch(ctx, object, merged)
	} else {
		err = r.objects.Patch(ctx, object, merged)
	}
	if err != nil {
		return fmt.Errorf("patching %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// conditions returns the object's conditions with some of them changed. A merge patch replaces the whole list.
func (r *Run) conditions(ctx context.Context, changes map[string]string, object *unstructured.Unstructured) ([]any, error) {
	current := object.DeepCopy()
	if err := r.objects.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
		return nil, fmt.Errorf("getting %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	list, _, err := unstructured.NestedSlice(current.Object, "status", "conditions")
	if err != nil {
		return nil, err
	}
	for _, kind := range slices.Sorted(maps.Keys(changes)) {
		what, message, _ := strings.Cut(changes[kind], ": ")
		status, reason, _ := strings.Cut(what, "/")
		list = slices.DeleteFunc(list, func(condition any) bool {
			mapping, is := condition.(map[string]any)
			return is && mapping["type"] == kind
		})
		list = append(list, map[string]any{
			"type": kind, "status": status, "reason": reason, "message": message,
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		})
	}
	return list, nil
}

func (r *Run) node(node Node) {
	r.Cluster.MachineConfig.SetNode(node.Node)
	if node.Down != nil {
		r.Cluster.Kubelets.SetDown(node.Name, *node.Down)
	}
}

func (r *Run) operator(ctx context.Context, verb string) error {
	switch verb {
	case "start":
		return r.Operator.Start()
	case "stop":
		return r.Operator.Stop()
	case "kill":
		return r.Operator.Kill()
	case "restart":
		return r.Operator.Restart()
	default:
		leader, err := r.Leader(ctx)
		if err != nil {
			return err
		}
		return leader.Kill()
	}
}

// Leader returns the replica that leads. A replica that runs alone does so without an election.
func (r *Run) Leader(ctx context.Context) (*devcluster.Replica, error) {
	replicas := r.Operator.Replicas()
	if len(replicas) == 1 {
		return replicas[0], nil
	}
	for _, replica := range replicas {
		if leads, err := replica.IsLeader(ctx); err == nil && leads { // one that is down does not lead
			return replica, nil
		}
	}
	return nil, errors.New("looking for the leader: no replica says that it leads")
}
