// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiserverv1 "github.com/openshift/api/apiserver/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// metrics answers the queries for allocatable resources, requests, movable requests, and the largest pods.
type metrics struct {
	err   error
	empty string // substring of the query without a result
}

func (m metrics) Samples(_ context.Context, query string) ([]checks.Sample, error) {
	if m.err != nil || m.empty != "" && strings.Contains(query, m.empty) {
		return nil, m.err
	}
	value := 2.0
	switch {
	case strings.Contains(query, "kube_node_status_allocatable"):
		value = 8
	case strings.HasPrefix(query, "max by"):
		value = 1
	case !strings.Contains(query, "kube_pod_info"):
		value = 3
	}
	samples := []checks.Sample{{Labels: map[string]string{"node": "a", "resource": "cpu"}, Value: value}}
	if value == 8 {
		samples = append(samples, checks.Sample{Labels: map[string]string{"node": "b", "resource": "cpu"}, Value: value})
	}
	return samples, nil
}

func TestGatherPlan(t *testing.T) {
	t.Parallel()
	holder := "managedupgrade.appuio.io/UpgradeJob/ops/weekly/1"
	log := func(user string, count int64) apiserverv1.PerResourceAPIRequestLog {
		return apiserverv1.PerResourceAPIRequestLog{ByNode: []apiserverv1.PerNodeAPIRequestLog{{ByUser: []apiserverv1.PerUserAPIRequestCount{{UserName: user, RequestCount: count}}}}}
	}
	count := func(name, removed string, total int64, logs ...apiserverv1.PerResourceAPIRequestLog) *apiserverv1.APIRequestCount {
		return &apiserverv1.APIRequestCount{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: apiserverv1.APIRequestCountStatus{
			RemovedInRelease: removed, RequestCount: total, Last24h: logs,
		}}
	}
	objects := []client.Object{
		count("pods.v1", "", 99), count("unused", "1.30", 0),
		count("byAll", "1.30", 7, log("system:kube-controller-manager", 4), log("shop", 1), log("shop", 1)),
		count("byController", "1.30", 4, log("system:kube-controller-manager", 4)),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config-managed", Name: "admin-gates"}, Data: map[string]string{"ack-4.14-b": "read\nthis", "ack-4.14-a": "x", "other": "y"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config", Name: "admin-acks"}, Data: map[string]string{"ack-4.14-a": "true", "ack-4.14-b": "yes"}},
		&operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: operatorv1.EtcdStatus{StaticPodOperatorStatus: operatorv1.StaticPodOperatorStatus{
			OperatorStatus: operatorv1.OperatorStatus{Conditions: []operatorv1.OperatorCondition{{Type: "BackupDegraded", Status: "True", Reason: "Full"}}},
		}}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: "home", Name: lock.Name, Annotations: map[string]string{"upgrade.managed.openshift.io/version": "4.14.9"},
		}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}},
	}
	got := checks.GatherPlan(t.Context(), checks.Readers{Live: simulation.NewFakeClient(t, objects...), Metrics: metrics{}, LockNamespace: "home"})
	want := checks.PlanFacts{
		APIs: []clusterstate.DeprecatedAPI{
			{Resource: "byAll", RemovedIn: "1.30", Requests: 3, Users: []string{"shop"}}, {Resource: "byController", RemovedIn: "1.30"}, {Resource: "unused", RemovedIn: "1.30"},
		},
		Gates: []clusterstate.AdminGate{
			{Name: "ack-4.14-a", Minor: "4.14", Description: "x", Acked: true}, {Name: "ack-4.14-b", Minor: "4.14", Description: "read this"}, {Name: "other", Description: "y"},
		},
		Etcd:         []clusterstate.EtcdCondition{{Type: "BackupDegraded", Condition: clusterstate.Condition{Status: "True", Reason: "Full"}}, {Type: clusterstate.EtcdMembersAvailable}},
		Holder:       lock.Holder{Group: "managedupgrade.appuio.io", Kind: "UpgradeJob", Namespace: "ops", Name: "weekly", UID: "1"},
		HolderTarget: "4.14.9",
		Loads:        map[string]map[string]checks.Load{"a": {"cpu": {Allocatable: 8, Requested: 3, Movable: 2, LargestPod: 1}}},
		Missing:      map[checks.FactSource]checks.Missing{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestGatherPlanMissing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		readers func(*testing.T) checks.Readers
		missing []checks.FactSource
	}{
		"empty cluster": {
			func(t *testing.T) checks.Readers {
				t.Helper()
				return checks.Readers{Live: simulation.NewFakeClient(t), Metrics: metrics{}}
			},
			[]checks.FactSource{checks.SourceEtcd},
		},
		"nothing answers": {
			func(t *testing.T) checks.Readers {
				t.Helper()
				all := func(any) bool { return true }
				return checks.Readers{Live: simulation.WithReadErrors(simulation.NewFakeClient(t), errors.New("down"), all), Metrics: metrics{err: errors.New("down")}}
			},
			[]checks.FactSource{
				checks.SourceAPIRequests, checks.SourceAdminGates, checks.SourceEtcd, checks.SourceOptionalOperators, checks.SourcePodRequests, checks.SourceLock,
			},
		},
		"no Prometheus": {
			func(t *testing.T) checks.Readers {
				t.Helper()
				return checks.Readers{Live: simulation.NewFakeClient(t)}
			},
			[]checks.FactSource{checks.SourceEtcd, checks.SourcePodRequests},
		},
		"no metrics of pods": {
			func(t *testing.T) checks.Readers {
				t.Helper()
				return checks.Readers{Live: simulation.NewFakeClient(t), Metrics: metrics{empty: "kube_pod_info"}}
			},
			[]checks.FactSource{checks.SourceEtcd, checks.SourcePodRequests},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := checks.GatherPlan(t.Context(), tc.readers(t))
			got := slices.Sorted(maps.Keys(facts.Missing))
			slices.Sort(tc.missing)
			if diff := cmp.Diff(tc.missing, got); diff != "" {
				t.Errorf("missing (-want +got):\n%s\n%v", diff, facts.Missing)
			}
		})
	}
}
