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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/aftermath"
)

// checkAftermath fails unless the invariants of every scenario hold: the lock is held, the
// finalizers are set, pools are paused, and alerts are silenced exactly while an upgrade is in
// progress; the metrics match the upgrades; each notification was sent once, in order; no request
// was forbidden or invalid; and the operator did not panic.
func checkAftermath(t *testing.T, cluster *devcluster.Cluster, operator *devcluster.Operator) {
	t.Helper()
	userClient, audited := newUserClient(t, cluster), auditedRequests(t, cluster)
	eventually(t, 2*time.Minute, "nothing is left behind", func(ctx context.Context) error {
		upgrades, err := aftermath.List(ctx, userClient)
		if err != nil {
			return err
		}
		var events corev1.EventList
		if err := userClient.List(ctx, &events); err != nil {
			return err
		}
		series, err := seriesOfLeader(ctx, operator)
		if err != nil {
			return err
		}
		scene := aftermath.Scene{
			Objects: userClient, Namespace: devcluster.OperatorNamespace, Now: time.Now(), Series: series,
			Requests: requestedVersions(audited, upgrades),
		}
		errs := []error{
			scene.Check(ctx),
			checkExtraNodes(ctx, userClient, upgrades),
			checkSilences(ctx, cluster, upgrades),
			checkDelivery(cluster, upgrades),
		}
		for i := range upgrades {
			errs = append(errs, checkCleanup(&upgrades[i]), checkNotifications(&upgrades[i], events.Items))
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

// checkCleanup returns an error if an upgrade has failed and its cleanup is not finished.
func checkCleanup(upgrade *aftermath.Upgrade) error {
	if current := upgrade.InProgress(); current != nil && current.Phase == history.PhaseFailed {
		return fmt.Errorf("%s: the clean-up of %s is not over", upgrade, current.Version)
	}
	return nil
}

// checkExtraNodes returns an error if extra nodes, Machines, or MachineSets exist although no
// upgrade is in progress.
func checkExtraNodes(ctx context.Context, userClient client.Client, upgrades []aftermath.Upgrade) error {
	if slices.ContainsFunc(upgrades, func(c aftermath.Upgrade) bool { return c.InProgress() != nil }) {
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

// checkNotifications compares the notifications about each version with its history: at most one of
// each kind in each attempt, and at least one of each kind that is due.
func checkNotifications(upgrade *aftermath.Upgrade, events []corev1.Event) error {
	var errs []error
	for _, h := range upgrade.History {
		ended := h.StartTime != nil && h.CompleteTime != nil
		isCancelled := h.Reason == engine.ReasonCancelled
		for reason, due := range map[string]bool{
			"UpgradeStarted":   h.StartTime != nil && len(h.Conditions) > 1,
			"UpgradeCompleted": ended && h.Phase == history.PhaseUpgraded,
			"UpgradeFailed":    ended && h.Phase == history.PhaseFailed && !isCancelled,
			"UpgradeCancelled": ended && isCancelled,
			"UpgradeSkipped":   ended && h.Phase == history.PhaseSkipped,
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
func notifications(upgrade *aftermath.Upgrade, events []corev1.Event, reason, version string) int {
	n := 0
	for _, event := range events {
		if event.InvolvedObject.UID == upgrade.UID && event.Reason == reason && (version == "" || strings.Contains(event.Message, "to "+version+" ")) {
			n += int(max(1, event.Count))
		}
	}
	return n
}
