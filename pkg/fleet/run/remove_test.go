// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	fleetrun "github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
)

var errUnreadable = errors.New("the API server does not answer")

// unreadable is a client that can read nothing.
type unreadable struct{ client.Client }

func (unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errUnreadable
}

// A caller that waits for the agent must not take an error of the API server for that.
func TestRemoveWork_returns_the_error_of_a_read(t *testing.T) {
	t.Parallel()
	run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}
	run.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6"}
	work, err := delivery.PreflightWork(run)
	if err != nil {
		t.Fatal(err)
	}
	work.Annotations[delivery.RepairedAnnotation] = "deleteOption"
	err = fleetrun.RemoveWork(t.Context(), unreadable{}, work)
	if !errors.Is(err, errUnreadable) || errors.Is(err, fleetrun.ErrRepairPending) {
		t.Errorf("got %v, want the error of the read alone", err)
	}
}
