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
)

// runAction runs one action. object is the object that the rule applies to, or nil if the rule has
// no objects.
func (r *Run) runAction(ctx context.Context, wait func(time.Duration) bool, action Action, object *unstructured.Unstructured) error {
	switch {
	case action.Patch != nil:
		return r.patch(ctx, *action.Patch, target(action.Patch.For, object))
	case action.Apply != nil:
		return r.world.Apply(ctx, []*unstructured.Unstructured{toObject(action.Apply, r.world.Now())})
	case action.Delete != nil:
		return client.IgnoreNotFound(r.world.Objects().Delete(ctx, target(action.Delete, object)))
	case action.Check != nil:
		return r.check(ctx, *action.Check)
	case action.Until != nil:
		return r.awaitStatement(ctx, wait, *action.Until)
	case action.Command != nil:
		return r.runCommand(ctx, wait, *action.Command)
	case action.Denied != nil:
		return r.awaitDenial(ctx, wait, &unstructured.Unstructured{Object: action.Denied})
	case action.Wait != 0:
		wait(time.Duration(action.Wait))
		return nil
	default:
		return r.changeWorld(ctx, action)
	}
}

// awaitStatement waits until a statement holds. Meanwhile, the run reports that it is waiting.
func (r *Run) awaitStatement(ctx context.Context, wait func(time.Duration) bool, statement Statement) error {
	defer r.observations.setAwaited(statement.key(), "")
	for {
		err := r.check(ctx, statement)
		if err == nil {
			return nil
		}
		r.observations.setAwaited(statement.key(), err.Error())
		if !wait(checkInterval) || ctx.Err() != nil {
			return fmt.Errorf("waiting until %w", err)
		}
	}
}

// awaitDenial waits until admission control denies the creation of an object.
func (r *Run) awaitDenial(ctx context.Context, wait func(time.Duration) bool, object *unstructured.Unstructured) error {
	err := r.world.Objects().Create(ctx, object.DeepCopy(), client.DryRunAll)
	for err == nil && wait(checkInterval) {
		err = r.world.Objects().Create(ctx, object.DeepCopy(), client.DryRunAll)
	}
	if err != nil && !strings.Contains(err.Error(), "denied") { // the messages of webhooks and policies contain this word
		return fmt.Errorf("simulating the creation of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// changeWorld runs an action that does not change objects.
func (r *Run) changeWorld(ctx context.Context, action Action) error {
	switch {
	case action.Release != nil:
		r.world.SetRelease(*action.Release)
		return nil
	case action.Node != nil:
		r.world.SetNode(*action.Node)
		return nil
	case action.Informer != nil:
		return r.world.SetInformer(ctx, *action.Informer)
	case action.Operator != "":
		return r.world.RunOperator(ctx, action.Operator)
	case action.Configure != nil:
		return r.world.Configure(action.Configure)
	case action.Fire != nil:
		return r.world.Fire(ctx, *action.Fire)
	case action.Resolve != "":
		return r.world.Resolve(ctx, action.Resolve)
	}
	for server, verb := range action.servers() {
		if verb != "" {
			return r.world.Server(ctx, server, verb)
		}
	}
	return nil
}

// Verbs of actions on servers and on the operator.
const (
	start      = "start"
	stop       = "stop"
	kill       = "kill"
	restart    = "restart"
	killLeader = "killLeader"
)

// servers returns the verbs of the action by server, empty for unaffected servers.
func (a Action) servers() map[Server]string {
	return map[Server]string{
		APIServer: a.APIServer, Etcd: a.Etcd, Prometheus: a.Prometheus, Alertmanager: a.Alertmanager, Receiver: a.Receiver,
	}
}

// requiresMonitoring reports whether the action requires a cluster with monitoring.
func (a Action) requiresMonitoring() bool {
	return a.Fire != nil || a.Resolve != "" || a.Prometheus != "" || a.Alertmanager != "" ||
		a.Check != nil && a.Check.For.requiresMonitoring() || a.Until != nil && a.Until.For.requiresMonitoring()
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
	content, _ := withMoments(patch.With, r.world.Now()).(map[string]any)
	if len(patch.Conditions) > 0 {
		conditions, err := r.conditions(ctx, patch.Conditions, object)
		if err != nil {
			return err
		}
		with := content
		content = map[string]any{}
		merge(content, with)
		merge(content, map[string]any{"status": map[string]any{"conditions": conditions}})
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	merged := client.RawPatch(types.MergePatchType, encoded)
	if patch.Status || len(patch.Conditions) > 0 {
		err = r.world.Objects().Status().Patch(ctx, object, merged)
	} else {
		err = r.world.Objects().Patch(ctx, object, merged)
	}
	if err != nil {
		return fmt.Errorf("patching %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// conditions returns the object's conditions with the changes applied. A merge patch must contain
// the whole list.
func (r *Run) conditions(ctx context.Context, changes map[string]string, object *unstructured.Unstructured) ([]any, error) {
	current := object.DeepCopy()
	if err := r.world.Objects().Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
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
			"lastTransitionTime": r.world.Now().UTC().Format(time.RFC3339),
		})
	}
	return list, nil
}
