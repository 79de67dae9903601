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
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

// checkAftermath fails unless the invariants of every scenario hold: the lock is held, the
// finalizers are set, pools are paused, and alerts are silenced exactly while an upgrade is in
// progress; the metrics
// match the upgrades; each notification was sent once, in order; no request was forbidden or
// invalid; and the operator did not panic.
func checkAftermath(t *testing.T, cluster *devcluster.Cluster, operator *devcluster.Operator) {
	t.Helper()
	userClient := newUserClient(t, cluster)
	eventually(t, 2*time.Minute, "nothing is left behind", func(ctx context.Context) error {
		upgrades, err := listUpgrades(ctx, userClient)
		if err != nil {
			return err
		}
		var events corev1.EventList
		if err := userClient.List(ctx, &events); err != nil {
			return err
		}
		errs := []error{
			checkLock(ctx, userClient, upgrades),
			checkPools(ctx, userClient, upgrades),
			checkHooks(ctx, userClient, upgrades),
			checkExtraNodes(ctx, userClient, upgrades),
			checkSilences(ctx, cluster, upgrades),
			checkSeries(ctx, userClient, operator, upgrades),
			checkDelivery(cluster, upgrades),
		}
		for i := range upgrades {
			errs = append(errs, checkCleanup(&upgrades[i]), checkFinalizer(&upgrades[i]), checkNotifications(&upgrades[i], events.Items))
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

// upgradeState is an object that requests an upgrade, of either group.
type upgradeState struct {
	metav1.ObjectMeta
	kind, group string
	finalizer   string // while an attempt is in progress
	conditions  []metav1.Condition
	history     []history.Record
}

// String returns the kind and the name.
func (u *upgradeState) String() string { return u.kind + " " + u.Name }

// listUpgrades returns all UpgradeConfigs that are upgrades themselves, and all UpgradeJobs.
func listUpgrades(ctx context.Context, userClient client.Client) ([]upgradeState, error) {
	var configs v1alpha1.UpgradeConfigList
	var jobs v1beta1.UpgradeJobList
	if err := errors.Join(userClient.List(ctx, &configs), userClient.List(ctx, &jobs)); err != nil {
		return nil, err
	}
	var all []upgradeState
	for i := range configs.Items {
		all = append(all, *stateOf(&configs.Items[i]))
	}
	for _, j := range jobs.Items {
		all = append(all, upgradeState{j.ObjectMeta, "UpgradeJob", v1beta1.GroupVersion.Group, v1beta1.Finalizer, j.Status.Conditions, j.Status.History})
	}
	return all, nil
}

func stateOf(c *v1alpha1.UpgradeConfig) *upgradeState {
	return &upgradeState{c.ObjectMeta, "UpgradeConfig", v1alpha1.GroupVersion.Group, v1alpha1.Finalizer, c.Status.Conditions, c.Status.History}
}

// checkPools returns an error if a pool is paused by an upgrade that is over, except past its release
// window.
func checkPools(ctx context.Context, userClient client.Client, upgrades []upgradeState) error {
	var pools mcfgv1.MachineConfigPoolList
	if err := userClient.List(ctx, &pools); err != nil {
		return err
	}
	var errs []error
	for i := range pools.Items {
		mark, marked := pools.Items[i].Annotations["managedupgrade.appuio.io/paused-by"]
		excused := slices.ContainsFunc(upgrades, func(u upgradeState) bool {
			return strings.HasPrefix(mark, string(u.UID)+"/") && (inProgress(&u) != nil || u.endedAs("UnpausingPoolsExpired"))
		})
		if marked && !excused {
			errs = append(errs, fmt.Errorf("pool %s is left with the mark %s, paused: %t", pools.Items[i].Name, mark, pools.Items[i].Spec.Paused))
		}
	}
	return errors.Join(errs...)
}

// checkHooks returns an error if a Job of a hook has a finalizer although no upgrade is in progress.
func checkHooks(ctx context.Context, userClient client.Client, upgrades []upgradeState) error {
	var jobs batchv1.JobList
	if err := userClient.List(ctx, &jobs); err != nil || slices.ContainsFunc(upgrades, func(u upgradeState) bool { return inProgress(&u) != nil }) {
		return err
	}
	var errs []error
	for i := range jobs.Items {
		if slices.Contains(jobs.Items[i].Finalizers, hooks.Finalizer) {
			errs = append(errs, fmt.Errorf("Job %s is left with its finalizer", jobs.Items[i].Name))
		}
	}
	return errors.Join(errs...)
}

// endedAs reports whether the last attempt ended for that reason.
func (u *upgradeState) endedAs(reason string) bool {
	return len(u.history) > 0 && u.history[0].Reason == reason
}

// inProgress returns the attempt that has started and is not finished; nil means none.
func inProgress(upgrade *upgradeState) *history.Record {
	i := slices.IndexFunc(upgrade.history, func(h history.Record) bool { return h.StartTime != nil && h.CompleteTime == nil })
	if i < 0 {
		return nil
	}
	return &upgrade.history[i]
}

// checkCleanup returns an error if an upgrade has failed and its cleanup is not finished.
func checkCleanup(upgrade *upgradeState) error {
	if current := inProgress(upgrade); current != nil && current.Phase == history.PhaseFailed {
		return fmt.Errorf("%s: the clean-up of %s is not over", upgrade, current.Version)
	}
	return nil
}

// checkExtraNodes returns an error if extra nodes, Machines, or MachineSets exist although no
// upgrade is in progress.
func checkExtraNodes(ctx context.Context, userClient client.Client, upgrades []upgradeState) error {
	if slices.ContainsFunc(upgrades, func(c upgradeState) bool { return inProgress(&c) != nil }) {
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

func checkFinalizer(upgrade *upgradeState) error {
	has := slices.Contains(upgrade.Finalizers, upgrade.finalizer)
	if want := inProgress(upgrade) != nil; has != want {
		return fmt.Errorf("%s: that it has a finalizer is %t, and that an upgrade is under way is %t", upgrade, has, want)
	}
	return nil
}

func checkLock(ctx context.Context, userClient client.Client, upgrades []upgradeState) error {
	want := ""
	for i := range upgrades {
		if c := &upgrades[i]; inProgress(c) != nil {
			want = strings.Join([]string{c.group, c.kind, c.Namespace, c.Name, string(c.UID)}, "/")
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
func checkNotifications(upgrade *upgradeState, events []corev1.Event) error {
	var errs []error
	for _, h := range upgrade.history {
		ended := h.StartTime != nil && h.CompleteTime != nil
		for reason, due := range map[string]bool{
			"UpgradeStarted":   h.StartTime != nil && len(h.Conditions) > 1,
			"UpgradeCompleted": ended && h.Phase == history.PhaseUpgraded,
			"UpgradeFailed":    ended && h.Phase == history.PhaseFailed,
		} {
			got, limit := notifications(upgrade, events, reason, h.Version), int(max(1, h.Attempt))
			if got > limit || due && got == 0 {
				errs = append(errs, fmt.Errorf("%s: %d notifications %s of %s in %d attempts (due: %t)",
					upgrade, got, reason, h.Version, limit, due))
			}
		}
	}
	return errors.Join(errs...)
}

// notifications counts the distinct notifications about a version. A repeated one is one Event with
// a count.
func notifications(upgrade *upgradeState, events []corev1.Event, reason, version string) int {
	n := 0
	for _, event := range events {
		if event.InvolvedObject.UID == upgrade.UID && event.Reason == reason && strings.Contains(event.Message, "to "+version+" ") {
			n += int(max(1, event.Count))
		}
	}
	return n
}
