// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
)

// MetricsQuerier answers queries. Each call sends one request.
type MetricsQuerier interface {
	// Samples returns the samples in the result of a PromQL expression.
	Samples(ctx context.Context, expression string) ([]Sample, error)
}

// PlanFacts holds facts that only plans need. They are immutable.
type PlanFacts struct {
	// APIs lists the APIs that later releases remove.
	APIs []clusterstate.DeprecatedAPI
	// Gates lists the administrator acknowledgments.
	Gates []clusterstate.AdminGate
	// Etcd lists the conditions of etcd.
	Etcd []clusterstate.EtcdCondition
	// OptionalOperators lists the installed ClusterServiceVersions.
	OptionalOperators []clusterstate.ClusterServiceVersion
	// Holder is the upgrade that holds the cluster's lock, or zero if the lock is free. HolderTarget is the
	// version that the upgrade installs, or empty if it is unknown.
	Holder       lock.Holder
	HolderTarget string
	// Loads compares node resources with the requests of pods, by node and resource.
	Loads map[string]map[string]Load
	// Missing holds the sources that could not be read.
	Missing map[FactSource]Missing
}

// GatherPlan reads the facts that only plans need. It never fails: sources that cannot be read are missing.
// It sends about 20 requests, not counting further pages of long lists.
func GatherPlan(ctx context.Context, r Readers) PlanFacts {
	g := newGathering(Plan, r)
	g.need(ctx, SourceAPIRequests, SourceAdminGates, SourceEtcd, SourceOptionalOperators, SourceLock, SourcePodRequests)
	g.facts.Plan.Missing = g.facts.Missing
	return g.facts.Plan
}

// With returns the facts combined with the facts of a plan.
func (f Facts) With(plan PlanFacts) Facts {
	missing := map[FactSource]Missing{}
	maps.Copy(missing, f.Missing)
	maps.Copy(missing, plan.Missing)
	f.Plan, f.Missing = plan, missing
	return f
}

// readLock reads the holder of the upgrade lock. Without the Lease, the operator has never upgraded the
// cluster.
func readLock(ctx context.Context, g *gathering) error {
	var lease coordinationv1.Lease
	if err := g.Live.Get(ctx, client.ObjectKey{Namespace: g.LockNamespace, Name: lock.Name}, &lease); err != nil {
		return client.IgnoreNotFound(err)
	}
	g.facts.Plan.Holder, g.facts.Plan.HolderTarget = lock.HolderOf(&lease), lock.AttemptOf(&lease).Version
	return nil
}

// Queries for the requests of pods. Drains do not delete static pods or pods of DaemonSets.
const (
	queryAllocatable = `sum by (node, resource) (kube_node_status_allocatable{resource=~"cpu|memory"})`
	queryRequested   = `sum by (node, resource) (kube_pod_container_resource_requests{resource=~"cpu|memory"}` + activePods + `)`
	queryMovable     = `sum by (node, resource) (kube_pod_container_resource_requests{resource=~"cpu|memory"}` + activePods + movablePods + `)`
	queryLargest     = `max by (node, resource) (sum by (namespace, pod, node, resource)` +
		` (kube_pod_container_resource_requests{resource=~"cpu|memory"}` + activePods + movablePods + `))`

	activePods  = ` * on (namespace, pod) group_left () max by (namespace, pod) (kube_pod_status_phase{phase=~"Pending|Running"} == 1)`
	movablePods = ` * on (namespace, pod) group_left () max by (namespace, pod) (kube_pod_info{created_by_kind!~"DaemonSet|Node"})`
)

var (
	errNoMetrics  = errors.New("no Prometheus is configured")
	errNoRequests = errors.New("Prometheus knows no requests of pods: kube-state-metrics is missing or has just been started")
)

// readLoads reads the resources of the nodes and the requests of pods. Nodes for which either is unknown are
// missing.
func readLoads(ctx context.Context, g *gathering) error {
	if g.Metrics == nil {
		return errNoMetrics
	}
	type key struct{ node, resource string }
	var results [4]map[key]float64
	for i, query := range []string{queryAllocatable, queryRequested, queryMovable, queryLargest} {
		samples, err := g.Metrics.Samples(ctx, query)
		if err != nil {
			return err
		}
		if len(samples) == 0 {
			return errNoRequests
		}
		results[i] = map[key]float64{}
		for _, s := range samples {
			results[i][key{s.Labels["node"], s.Labels["resource"]}] = s.Value
		}
	}
	loads := map[string]map[string]Load{}
	for k, allocatable := range results[0] {
		requested, known := results[1][k]
		if !known || k.node == "" {
			continue
		}
		if loads[k.node] == nil {
			loads[k.node] = map[string]Load{}
		}
		loads[k.node][k.resource] = Load{Allocatable: allocatable, Requested: requested, Movable: results[2][k], LargestPod: results[3][k]}
	}
	g.facts.Plan.Loads = loads
	return nil
}
