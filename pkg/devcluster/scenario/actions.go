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

// do does one thing. The object is the one that the rule applies to; nil if it is not about one.
func (p *Play) do(ctx context.Context, action Action, object *unstructured.Unstructured) error {
	switch {
	case action.Patch != nil:
		return p.patch(ctx, *action.Patch, target(action.Patch.For, object))
	case action.Apply != nil:
		applied := &unstructured.Unstructured{Object: action.Apply}
		return manifests.Apply(ctx, p.objects, []*unstructured.Unstructured{applied.DeepCopy()})
	case action.Delete != nil:
		return client.IgnoreNotFound(p.objects.Delete(ctx, target(action.Delete, object)))
	case action.Release != nil:
		p.Cluster.Catalogue.Set(*action.Release)
		return nil
	case action.Node != nil:
		p.node(*action.Node)
		return nil
	case action.Operator != "":
		return p.operator(ctx, action.Operator)
	case action.APIServer == stop:
		return p.Cluster.StopAPIServer()
	case action.APIServer == start:
		return p.Cluster.StartAPIServer(ctx)
	case action.Configure != nil:
		return p.configure(action.Configure)
	case action.Receiver == stop:
		return p.Cluster.Receiver.Stop()
	case action.Receiver == start:
		return p.Cluster.Receiver.Start()
	case action.Check != nil:
		return p.check(ctx, *action.Check)
	case action.aboutMonitoring():
		return monitor(ctx, action, p.Cluster.Monitoring)
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

// aboutMonitoring says whether the action is one that a cluster without monitoring cannot do.
func (a Action) aboutMonitoring() bool {
	return a.Fire != nil || a.Resolve != "" || a.Prometheus != "" || a.Alertmanager != "" || a.Check != nil && a.Check.For.aboutMonitoring()
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

func (p *Play) configure(config map[string]any) error {
	text, err := configFile(config, p.addresses())
	if err != nil {
		return fmt.Errorf("writing the operator's configuration: %w", err)
	}
	return p.Operator.Configure(text)
}

func (p *Play) check(ctx context.Context, statement Statement) error {
	if problems := p.checkStatement(ctx, statement); len(problems) > 0 {
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

func (p *Play) patch(ctx context.Context, patch Patch, object *unstructured.Unstructured) error {
	content := patch.With
	if len(patch.Conditions) > 0 {
		conditions, err := p.conditions(ctx, patch.Conditions, object)
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
		err = p.objects.Status().Patch(ctx, object, merged)
	} else {
		err = p.objects.Patch(ctx, object, merged)
	}
	if err != nil {
		return fmt.Errorf("patching %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// conditions returns the object's conditions with some of them changed. A merge patch replaces the whole list.
func (p *Play) conditions(ctx context.Context, changes map[string]string, object *unstructured.Unstructured) ([]any, error) {
	current := object.DeepCopy()
	if err := p.objects.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
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

func (p *Play) node(node Node) {
	p.Cluster.MachineConfig.SetNode(node.Node)
	if node.Down != nil {
		p.Cluster.Kubelets.SetDown(node.Name, *node.Down)
	}
}

func (p *Play) operator(ctx context.Context, verb string) error {
	switch verb {
	case "start":
		return p.Operator.Start()
	case "stop":
		return p.Operator.Stop()
	case "kill":
		return p.Operator.Kill()
	case "restart":
		return p.Operator.Restart()
	default:
		leader, err := p.Leader(ctx)
		if err != nil {
			return err
		}
		return leader.Kill()
	}
}

// Leader returns the replica that leads. A replica that runs alone does so without an election.
func (p *Play) Leader(ctx context.Context) (*devcluster.Replica, error) {
	replicas := p.Operator.Replicas()
	if len(replicas) == 1 {
		return replicas[0], nil
	}
	for _, replica := range replicas {
		if leads, err := replica.Leads(ctx); err == nil && leads { // one that is down does not lead
			return replica, nil
		}
	}
	return nil, errors.New("looking for the leader: no replica says that it leads")
}
