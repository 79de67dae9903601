// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e || cvo

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
)

// checkAftermath fails unless the invariants of every scenario hold: the lock is held, the
// finalizer is set, and alerts are silenced exactly while an upgrade is in progress; the metrics
// match the upgrades; each notification was sent once, in order; no request was forbidden or
// invalid; and the operator did not panic.
func checkAftermath(t *testing.T, cluster *devcluster.Cluster, operator *devcluster.Operator) {
	t.Helper()
	userClient := newUserClient(t, cluster)
	eventually(t, 2*time.Minute, "nothing is left behind", func(ctx context.Context) error {
		var configs v1alpha1.UpgradeConfigList
		if err := userClient.List(ctx, &configs); err != nil {
			return err
		}
		var events corev1.EventList
		if err := userClient.List(ctx, &events); err != nil {
			return err
		}
		errs := []error{
			checkLock(ctx, userClient, configs.Items),
			checkExtraNodes(ctx, userClient, configs.Items),
			checkSilences(ctx, cluster, configs.Items),
			checkSeries(ctx, operator, configs.Items),
			checkDelivery(cluster, configs.Items),
		}
		for i := range configs.Items {
			errs = append(errs, checkCleanup(&configs.Items[i]), checkFinalizer(&configs.Items[i]), checkNotifications(&configs.Items[i], events.Items))
		}
		return errors.Join(errs...)
	})
	for _, r := range auditedRequests(t, cluster) {
		if cluster.StartingAt(r.Received) {
			continue // the API server had not loaded the roles yet
		}
		switch r.Response.Code {
		case http.StatusBadRequest, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity:
			t.Errorf("the operator was refused: %d for %s (%s)", r.Response.Code, r.operation(), r.URI)
		}
	}
	for _, replica := range operator.Replicas() {
		log, err := os.ReadFile(replica.Log())
		if err != nil && !errors.Is(err, os.ErrNotExist) { // an operator that was never started has no log
			t.Error(err)
		}
		if bytes.Contains(log, []byte("panic")) {
			t.Errorf("the operator panicked: see %s", replica.Log())
		}
	}
}

// inProgress returns the attempt that has started and is not finished; nil means none.
func inProgress(config *v1alpha1.UpgradeConfig) *history.Record {
	i := slices.IndexFunc(config.Status.History, func(h history.Record) bool { return h.StartTime != nil && h.CompleteTime == nil })
	if i < 0 {
		return nil
	}
	return &config.Status.History[i]
}

// checkCleanup returns an error if an upgrade has failed and its cleanup is not finished.
func checkCleanup(config *v1alpha1.UpgradeConfig) error {
	if current := inProgress(config); current != nil && current.Phase == history.PhaseFailed {
		return fmt.Errorf("UpgradeConfig %s: the clean-up of %s is not over", config.Name, current.Version)
	}
	return nil
}

// checkExtraNodes returns an error if extra nodes, Machines, or MachineSets exist although no
// upgrade is in progress.
func checkExtraNodes(ctx context.Context, userClient client.Client, configs []v1alpha1.UpgradeConfig) error {
	if slices.ContainsFunc(configs, func(c v1alpha1.UpgradeConfig) bool { return inProgress(&c) != nil }) {
		return nil
	}
	var errs []error
	for _, list := range []client.ObjectList{&machinev1beta1.MachineSetList{}, &machinev1beta1.MachineList{}, &corev1.NodeList{}} {
		err := userClient.List(ctx, list, client.HasLabels{clusterstate.LabelExtraNodeOf})
		if err != nil && !meta.IsNoMatchError(err) { // a cluster may have no machine API
			return err
		}
		if n := meta.LenList(list); n > 0 {
			errs = append(errs, fmt.Errorf("left behind: a %T of %d that are extra", list, n))
		}
	}
	return errors.Join(errs...)
}

func checkFinalizer(config *v1alpha1.UpgradeConfig) error {
	has := slices.Contains(config.Finalizers, v1alpha1.Finalizer)
	if want := inProgress(config) != nil; has != want {
		return fmt.Errorf("UpgradeConfig %s: that it has a finalizer is %t, and that an upgrade is under way is %t", config.Name, has, want)
	}
	return nil
}

func checkLock(ctx context.Context, userClient client.Client, configs []v1alpha1.UpgradeConfig) error {
	want := ""
	for i := range configs {
		if c := &configs[i]; inProgress(c) != nil {
			want = strings.Join([]string{"UpgradeConfig", c.Namespace, c.Name, string(c.UID)}, "/")
		}
	}
	var lease coordinationv1.Lease
	err := userClient.Get(ctx, client.ObjectKey{Namespace: devcluster.OperatorNamespace, Name: "cluster-upgrade"}, &lease)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	got := ""
	if lease.Spec.HolderIdentity != nil {
		got = *lease.Spec.HolderIdentity
	}
	if got != want {
		return fmt.Errorf("the lock is held by %q, want %q", got, want)
	}
	return nil
}

// checkNotifications compares the notifications about each version with its history: at most one of
// each kind in each attempt, and at least one of each that is due.
func checkNotifications(config *v1alpha1.UpgradeConfig, events []corev1.Event) error {
	var errs []error
	for _, h := range config.Status.History {
		ended := h.StartTime != nil && h.CompleteTime != nil
		for reason, due := range map[string]bool{
			"UpgradeStarted":   h.StartTime != nil && len(h.Conditions) > 1,
			"UpgradeCompleted": ended && h.Phase == history.PhaseUpgraded,
			"UpgradeFailed":    ended && h.Phase == history.PhaseFailed,
		} {
			got, limit := notifications(config, events, reason, h.Version), int(max(1, h.Attempt))
			if got > limit || due && got == 0 {
				errs = append(errs, fmt.Errorf("UpgradeConfig %s: %d notifications %s of %s in %d attempts (due: %t)",
					config.Name, got, reason, h.Version, limit, due))
			}
		}
	}
	return errors.Join(errs...)
}

// notifications counts the distinct notifications about a version. A repeated one is one Event with
// a count.
func notifications(config *v1alpha1.UpgradeConfig, events []corev1.Event, reason, version string) int {
	n := 0
	for _, event := range events {
		if event.InvolvedObject.UID == config.UID && event.Reason == reason && strings.Contains(event.Message, "to "+version+" ") {
			n += int(max(1, event.Count))
		}
	}
	return n
}
