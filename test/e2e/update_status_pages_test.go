// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/statuscontroller"
)

// TestAlertPages_of_update_status runs the commands of the pages about update status on objects in the
// states that the pages describe.
func TestAlertPages_of_update_status(t *testing.T) {
	t.Parallel()
	s, term := shellServer(t)
	now := time.Now().UTC()
	s.updateStatus(t, now)
	bin, err := controlplane.FindBinDir()
	mustSucceed(t, err)
	plugin := fmt.Sprintf(`#!/usr/bin/env bash
case "$*" in
"update "*) shift; exec %s --kubeconfig %s "$@" ;;
*) exec %s/oc "$@" ;;
esac
`, filepath.Join(bin, "kubectl-update"), s.kubeconfig, term.path)
	folder := t.TempDir()
	mustSucceed(t, os.WriteFile(filepath.Join(folder, "oc"), []byte(plugin), 0o700))
	term = terminal{folder}

	informer := object(updateKind("UpdateInformer"), "", "queue", withCondition(map[string]any{"spec": map[string]any{
		"clientConfig": map[string]any{"service": map[string]any{"name": "queue", "namespace": "default"}},
	}}, "Reachable", "TLSFailed", "the certificate has expired"))
	s.create(t, append(stuckUpdate(now), informer)...)
	for _, o := range []client.Object{
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "queue"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "update-status-controller-metrics-tls"}},
		eventOf(informer, "InformerLost", "the certificate has expired"),
	} {
		mustSucceed(t, s.client.Create(t.Context(), o))
	}

	names := map[string]string{"NAMESPACE": "default", "NAME": "queue"}
	term.follow(t, "ManagedUpgradeInformerUnreachable", names, []expectation{
		{"get updateinformers", "queue.*TLSFailed"}, {"get updateinformer queue", "the certificate has expired"}, {"get events", "InformerLost"}, {"get service", "service/queue"},
	})
	term.follow(t, "ManagedUpgradeNeedsAction", names, []expectation{
		{"oc update status", `^STUCK .*Pool worker has made no progress for \d+m\.`}, {"get updatestatus", "actionRequired: true"},
	})
	term.follow(t, "ManagedUpgradeStatusControllerDown", names, []expectation{
		{"oc logs", "log of"}, {"get lease", "renewTime"}, {"get endpointslices", "kind|No resources|ENDPOINTS"}, {"get secret", "metrics-tls"}, {"pods", "No resources"},
	})
	s.create(t, object(maintenanceKind("UpgradeJob"), home, "weekly-1", withCondition(map[string]any{"spec": map[string]any{
		"startAfter": "2027-03-02T21:00:00Z", "startBefore": "2027-03-02T22:00:00Z", "desiredVersion": map[string]any{"version": "4.20.6", "image": offeredImage},
	}}, "Succeeded", "Expired", "waited for the lock")))
	term.follow(t, "../concepts/command-line", map[string]string{"acknowledge": "acknowledge -y", "NAME": "weekly-1", "UUID": "unknown", "deploy/must-gather.sh": repository + "/deploy/must-gather.sh", "gathered": filepath.Join(t.TempDir(), "dump")}, []expectation{
		{"must-gather.sh", `files in `},
		{"--replay", "^UNKNOWN .*(?s:.*)listing the nodes: not in the dump"}, // the API server has none
		{"oc update status", `^STUCK .*Pool worker has made no progress for \d+m\.`},
		{"upgradejob/weekly-1", "acknowledged\n$"},
		{"insight/unknown", "does not need attention"}, // the screens' own tests acknowledge one that does
	})
	term.follow(t, "ManagedUpgradeStatusTruncated", names, []expectation{
		{"Truncated", "^12 insights of queue are not shown\n"}, {"get updateinformers", "queue"},
	})
}

func updateKind(kind string) schema.GroupVersionKind {
	return updatev1beta1.GroupVersion.WithKind(kind)
}

// updateStatus deploys update status with a Lease that the leader renewed at the given time.
func (s *server) updateStatus(t *testing.T, renewed time.Time) {
	t.Helper()
	for _, name := range []string{"openshift-config", "openshift-config-managed"} {
		mustSucceed(t, s.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	s.apply(t, kustomizedFrom(t, deployFolder+"/update-status"))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: statuscontroller.LeaderLease}}
	lease.Spec.RenewTime = new(metav1.NewMicroTime(renewed))
	mustSucceed(t, s.client.Create(t.Context(), lease))
}

// stuckUpdate returns the UpdateStatus and the ClusterVersion of an update whose control plane is updated and
// whose pool worker is stuck.
func stuckUpdate(now time.Time) []*unstructured.Unstructured {
	installed, started, updated := ago(now, 30*24*time.Hour), ago(now, 2*time.Hour), ago(now, 70*time.Minute)
	status := object(updateKind("UpdateStatus"), "", "cluster", map[string]any{"spec": map[string]any{}, "status": stuckStatus(now)})
	version := object(clusterVersionKind, "", "version", map[string]any{
		"spec": map[string]any{"clusterID": "3c5f2c8e-7b61-4c66-8dc0-4f1d6b2f9c11"},
		"status": map[string]any{
			"observedGeneration": int64(1), "versionHash": "a", "availableUpdates": []any{},
			"desired": map[string]any{"version": "4.20.6", "image": offeredImage},
			"history": []any{
				map[string]any{"state": "Completed", "version": "4.20.6", "image": offeredImage, "verified": true, "startedTime": started, "completionTime": updated},
				map[string]any{"state": "Completed", "version": "4.20.5", "image": conditionalImage, "verified": false, "startedTime": installed, "completionTime": installed},
			},
			"conditions": []any{
				map[string]any{"type": "Available", "status": "True", "lastTransitionTime": installed},
				map[string]any{"type": "Failing", "status": "False", "lastTransitionTime": installed},
				map[string]any{"type": "Progressing", "status": "False", "lastTransitionTime": updated},
			},
		},
	})
	return []*unstructured.Unstructured{status, version}
}

// stuckStatus returns the status of a stuck update with more insights than it shows.
func stuckStatus(now time.Time) map[string]any {
	at, since := ago(now, 0), ago(now, 64*time.Minute)
	return map[string]any{
		"observedTime": at,
		"assessment": map[string]any{
			"state": "Stuck", "since": since, "actionRequired": true, "summary": "Pool worker has made no progress", "summarySince": since,
			"fromRelease": "4.20.5", "release": "4.20.6", "startedTime": ago(now, 2*time.Hour),
			"remedy": map[string]any{"type": "Remedy", "text": "Add a replica."},
		},
		"controlPlane": map[string]any{"updateInformers": []any{map[string]any{"name": statuscontroller.Component, "insights": []any{map[string]any{
			"uid": "Truncated/queue", "acquisitionTime": at, "scope": map[string]any{"type": "ControlPlane"},
			"impact": map[string]any{"level": "info", "type": "Unknown", "reason": "Truncated", "summary": "12 insights of queue are not shown"},
		}}}}},
	}
}

// ago returns a time before now, as objects contain it.
func ago(now time.Time, before time.Duration) string { return now.Add(-before).Format(time.RFC3339) }
