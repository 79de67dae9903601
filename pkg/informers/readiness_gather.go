// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
)

// The sources that only plans need.
const (
	SourceAPIRequests       Source = "API requests"
	SourceAdminGates        Source = "admin gates"
	SourceEtcd              Source = "etcd"
	SourceOptionalOperators Source = "optional operators"
	SourceLock              Source = "upgrade lock"
	SourcePodRequests       Source = "requests of pods"
)

// Metrics answers queries. Each call is one request.
type Metrics interface {
	// Samples returns the samples in the result of a PromQL expression.
	Samples(ctx context.Context, expression string) ([]checks.Sample, error)
}

// PlanReaders are what the facts of plans are read from.
type PlanReaders struct {
	// Live reads from the API server, or from a dump. None of the kinds is cached.
	Live client.Reader
	// Metrics is Prometheus; nil means that none is configured.
	Metrics Metrics
	// LockNamespace is the namespace of the upgrade lock.
	LockNamespace string
}

// PlanFacts are what is known about a cluster only for plans. They are never changed.
type PlanFacts struct {
	// APIs are those that later releases remove.
	APIs []clusterstate.DeprecatedAPI
	// Gates are what an administrator must acknowledge.
	Gates []clusterstate.AdminGate
	// Etcd are the conditions of etcd.
	Etcd []clusterstate.EtcdCondition
	// OptionalOperators are the installed ClusterServiceVersions.
	OptionalOperators []clusterstate.ClusterServiceVersion
	// Holder is the upgrade that holds the lock of the cluster; zero means that it is free. HolderTarget
	// is the version to which that upgrade leads; empty means that it is unknown.
	Holder       lock.Holder
	HolderTarget string
	// Loads are what the nodes have and what is requested of it, by node and resource.
	Loads map[string]map[string]checks.Load
	// Missing are the sources that could not be read.
	Missing map[Source]Missing
}

// Has reports whether nothing of the source is missing.
func (p PlanFacts) Has(source Source) bool {
	_, missing := p.Missing[source]
	return !missing
}

// GatherPlan reads the facts that only plans need. It never fails: what cannot be read is missing. It
// makes some 20 requests, apart from the pages of long lists.
func GatherPlan(ctx context.Context, r PlanReaders) PlanFacts {
	facts := PlanFacts{Missing: map[Source]Missing{}}
	read := func(source Source, read func() error) {
		if err := read(); err != nil {
			facts.Missing[source] = missingOf(err)
		}
	}
	read(SourceAPIRequests, func() (err error) {
		facts.APIs, err = clusterstate.ListDeprecatedAPIs(ctx, r.Live)
		return err
	})
	read(SourceAdminGates, func() (err error) {
		facts.Gates, err = clusterstate.ListAdminGates(ctx, r.Live)
		return err
	})
	read(SourceEtcd, func() (err error) {
		facts.Etcd, err = clusterstate.ListEtcdConditions(ctx, r.Live)
		return err
	})
	read(SourceOptionalOperators, func() (err error) {
		facts.OptionalOperators, err = clusterstate.ListClusterServiceVersions(ctx, r.Live)
		return err
	})
	read(SourceLock, func() (err error) {
		facts.Holder, facts.HolderTarget, err = getHolder(ctx, r)
		return err
	})
	read(SourcePodRequests, func() (err error) {
		facts.Loads, err = queryLoads(ctx, r.Metrics)
		return err
	})
	return facts
}

// getHolder returns the holder of the upgrade lock and its target. A cluster without the Lease has
// never been upgraded by the operator.
func getHolder(ctx context.Context, r PlanReaders) (lock.Holder, string, error) {
	var lease coordinationv1.Lease
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.LockNamespace, Name: lock.Name}, &lease); err != nil {
		return lock.Holder{}, "", client.IgnoreNotFound(err)
	}
	return lock.HolderOf(&lease), lock.AttemptOf(&lease).Version, nil
}

// The queries about the requests of pods. A drain deletes neither static pods nor those of DaemonSets.
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

// queryLoads returns what the nodes have, and what pods request of it. A node of which either is
// unknown is missing.
func queryLoads(ctx context.Context, metrics Metrics) (map[string]map[string]checks.Load, error) {
	if metrics == nil {
		return nil, errNoMetrics
	}
	type key struct{ node, resource string }
	var results [4]map[key]float64
	for i, query := range []string{queryAllocatable, queryRequested, queryMovable, queryLargest} {
		samples, err := metrics.Samples(ctx, query)
		if err != nil {
			return nil, err
		}
		if len(samples) == 0 {
			return nil, errNoRequests
		}
		results[i] = map[key]float64{}
		for _, s := range samples {
			results[i][key{s.Labels["node"], s.Labels["resource"]}] = s.Value
		}
	}
	loads := map[string]map[string]checks.Load{}
	for k, allocatable := range results[0] {
		requested, known := results[1][k]
		if !known || k.node == "" {
			continue
		}
		if loads[k.node] == nil {
			loads[k.node] = map[string]checks.Load{}
		}
		loads[k.node][k.resource] = checks.Load{Allocatable: allocatable, Requested: requested, Movable: results[2][k], LargestPod: results[3][k]}
	}
	return loads, nil
}
