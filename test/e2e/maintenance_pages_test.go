// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
)

// shellServer is an API server with everything that a user installs, and a terminal. None of this project's
// controllers run, and only the named ones of Kubernetes. The test writes the states that the pages describe.
func shellServer(t *testing.T, controllers ...string) (*server, terminal) {
	t.Helper()
	s := startServerWith(t, controlplane.Options{Controllers: controllers, WithoutControllerManager: len(controllers) == 0})
	s.openshift(t)
	s.apply(t, kustomized(t))
	folder := t.TempDir()
	oc := fmt.Sprintf(`#!/usr/bin/env bash
case "$*" in
"logs "*) echo "log of a hook" ;;
*) exec %s --kubeconfig %s "$@" ;;
esac
`, filepath.Join(s.BinDir(), "kubectl"), s.kubeconfig)
	if err := os.WriteFile(filepath.Join(folder, "oc"), []byte(oc), 0o700); err != nil {
		t.Fatal(err)
	}
	return s, terminal{folder}
}

// create creates objects with their status.
func (s *server) create(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		status, hasStatus := o.Object["status"]
		if err := s.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if !hasStatus {
			continue
		}
		o.Object["status"] = status // a merge patch would drop null values
		if err := s.client.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func maintenanceKind(kind string) schema.GroupVersionKind {
	return parametersKind.GroupVersion().WithKind(kind)
}

// withCondition returns the fields of an object with a False condition in its status.
func withCondition(fields map[string]any, kind, reason, message string) map[string]any {
	all := maps.Clone(fields)
	all["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": kind, "status": "False", "reason": reason, "message": message, "lastTransitionTime": "2027-03-02T21:00:00Z",
	}}}
	return all
}

// eventOf returns an Event about an object.
func eventOf(o client.Object, reason, message string) *corev1.Event {
	event := eventAbout(o.GetObjectKind().GroupVersionKind().GroupVersion().String(), o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), home)
	event.Name, event.Reason, event.Message, event.Type = o.GetName()+".1", reason, message, corev1.EventTypeWarning
	event.InvolvedObject.Name, event.InvolvedObject.UID = o.GetName(), o.GetUID()
	return event
}

// TestAlertPages_of_scheduled_maintenance runs the commands of the pages in the states that the
// pages describe.
func TestAlertPages_of_scheduled_maintenance(t *testing.T) {
	t.Parallel()
	s, term := shellServer(t)
	job := object(maintenanceKind("UpgradeJob"), home, "weekly-1", withCondition(map[string]any{"spec": map[string]any{
		"startAfter": "2027-03-02T21:00:00Z", "startBefore": "2027-03-02T22:00:00Z", "desiredVersion": map[string]any{"version": "4.20.6", "image": offeredImage},
	}}, "Succeeded", "Expired", "waited for the lock"))
	config := object(maintenanceKind("UpgradeConfig"), home, "cluster-upgrade", withCondition(map[string]any{"spec": map[string]any{
		"schedule": map[string]any{"cron": "0 22 * * 2", "suspend": true}, "jobTemplate": map[string]any{"spec": map[string]any{}},
	}}, "Accepted", "NeverRuns", "no date matches the schedule"))
	config.Object["status"].(map[string]any)["nextPossibleSchedules"] = []any{map[string]any{"time": "2027-03-09T22:00:00Z"}}
	parameters := object(parametersKind, home, "version", withCondition(map[string]any{"spec": map[string]any{
		"template": map[string]any{"spec": map[string]any{"channel": "stable-4.20"}},
	}}, "Synced", "Contested", "another client keeps changing the parameters"))
	hook := object(maintenanceKind("UpgradeJobHook"), home, "notify", map[string]any{"spec": map[string]any{
		"events": []any{"Start"}, "template": map[string]any{"spec": map[string]any{}},
	}})
	version := object(clusterVersionKind, "", "version", map[string]any{"spec": map[string]any{"clusterID": "3c5f2c8e-7b61-4c66-8dc0-4f1d6b2f9c11"}})
	pool := object(schema.GroupVersionKind{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfigPool"}, "", "night", map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"managedupgrade.appuio.io/paused-by": "uid/1/1804021200/1804028400"}},
		"spec":     map[string]any{"paused": true},
	})
	s.create(t, job, config, parameters, hook, version, pool)
	hookJob := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: home, Name: "notify-start", Labels: map[string]string{"managedupgrade.appuio.io/component": "hook"},
	}}
	hookJob.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "notify", Image: "notify"}}}
	for _, o := range []client.Object{
		hookJob, eventOf(job, "UpgradeSkipped", "waited for the lock"), eventOf(config, "SlotsMissed", "the operator was down"), eventOf(parameters, "DriftDetected", "by argocd"),
	} {
		if err := s.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}

	names := map[string]string{"NAMESPACE": home, "NAME": "weekly-1", "HOOK": "notify", "POOL": "night"}
	term.follow(t, "ManagedUpgradeSkipped", names, []expectation{
		{"describe", "(?s)Expired.*UpgradeSkipped"}, {"get events", "UpgradeSkipped"}, {"get clusterversions", "^\n$"}, {"annotate", "annotated"},
	})
	term.follow(t, "ManagedUpgradeHookFailed", names, []expectation{
		{"get upgradejobhook", "Start"}, {"get jobs", "notify-start"}, {"describe jobs", "notify-start"}, {"logs", "log of a hook"}, {"get events", "UpgradeSkipped"},
	})
	term.follow(t, "ManagedUpgradePoolLeftPaused", names, []expectation{
		{"paused-by", "^uid/1/1804021200/1804028400\n$"}, {"get machineconfigpool", "night"}, {"get upgradejobs", "weekly-1"}, {"patch", "patched"},
	})
	names["NAME"] = "cluster-upgrade"
	term.follow(t, "ManagedUpgradeScheduleInvalid", names, []expectation{
		{"Accepted", "^no date matches the schedule\n$"}, {"get upgradeconfigs", "NeverRuns"},
	})
	term.follow(t, "ManagedUpgradeSlotMissed", names, []expectation{
		{"get upgradeconfigs", "cron"},
		{"get events", "SlotsMissed"},
		{"get upgradejobs", "weekly-1"},
		{"get clusterversions", "clusterID"},
		{"get pods", "No resources found"},
		{"annotate", "annotated"},
	})
	term.follow(t, "ManagedUpgradeClusterVersionContested", names, []expectation{
		{"get events", "DriftDetected.*argocd"}, {"Synced", "^another client keeps changing"}, {"managed-fields", "managedFields"}, {"get clusterversions", "stable-4.20"},
	})
	term.follow(t, "../concepts/cluster-version", nil, []expectation{
		{"get clusterversions", "version +False +another client"}, {"get events", "DriftDetected.*argocd"},
	})
	s.create(t, object(upgradeConfigKind, home, "managed-upgrade-config", map[string]any{"spec": map[string]any{
		"type": "OSD", "upgradeAt": "2030-01-31T01:00:00Z", "PDBForceDrainTimeout": int64(60),
		"desired": map[string]any{"version": "4.20.6", "channel": "stable-4.20"},
	}}))
	term.follow(t, "../concepts/moving-to-scheduled-maintenance", nil, []expectation{
		{"get maintenance", "(?s)upgradeconfig.*cluster-upgrade.*upgradejob.*weekly-1"},
		{"nextPossibleSchedules", "^2027-03-09T22:00:00Z\n$"},
		{"patch", "patched\n$"},
		{"delete upgradeconfigs.upgrade", `"managed-upgrade-config" deleted`},
	})
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"managedupgrade.appuio.io/retry", "managedupgrade.appuio.io/acknowledged"} {
		if job.GetAnnotations()[key] == "" {
			t.Errorf("the UpgradeJob has no annotation %s: %v", key, job.GetAnnotations())
		}
	}
	term.follow(t, "ManagedUpgradeFailed", map[string]string{"KIND": "UpgradeJob.managedupgrade.appuio.io", "NAMESPACE": home, "NAME": "weekly-1"}, []expectation{
		{"describe", "Expired"},
		{"get events", "UpgradeSkipped"},
		{"get clusterversions", "clusterID"},
		{"get clusteroperators", "No resources"},
		{"get machineconfigpools", "night"},
		{"annotate upgradejob", "annotated"},
		{"annotate upgrade ", "NotFound"}, // it is no UpgradeConfig
	})
}
