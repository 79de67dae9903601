// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package window_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/window"
)

var start = time.Date(2027, 3, 2, 21, 0, 0, 0, time.UTC)

func TestWaitUntilStart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		now    time.Time
		passed bool
	}{
		"a nanosecond before": {now: start.Add(-1)},
		"at the start":        {now: start, passed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := window.WaitUntilStart(start)(t.Context(), engine.Run{Now: tc.now})
			if err != nil || got.Passed() != tc.passed {
				t.Errorf("%s: %s, %v", got.Reason(), got.Message(), err)
			}
			if !tc.passed && got != engine.WaitUntil(start, "Scheduled", "starts at 2027-03-02T21:00:00Z") {
				t.Errorf("it does not wait for the start alone: %+v", got)
			}
		})
	}
}

func holidays() *maintenancev1beta1.UpgradeSuspensionWindow {
	return &maintenancev1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "holidays"},
		Spec:       maintenancev1beta1.UpgradeSuspensionWindowSpec{Start: "2027-03-01T00:00:00Z", End: "2027-03-05T00:00:00Z", JobSelector: &maintenancev1beta1.LabelSelector{}},
	}
}

func config(edit func(*maintenancev1beta1.UpgradeConfig)) *maintenancev1beta1.UpgradeConfig {
	cfg := &maintenancev1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "weekly", UID: "config"},
		Spec:       maintenancev1beta1.UpgradeConfigSpec{Schedule: maintenancev1beta1.UpgradeConfigSchedule{Cron: "0 21 * * 2", Location: "UTC"}},
	}
	edit(cfg)
	return cfg
}

func TestFailIfSuspended(t *testing.T) {
	t.Parallel()
	slot := &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "upgrades", Name: "slot", Labels: map[string]string{maintenancev1beta1.SlotLabel: "x"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: maintenancev1beta1.GroupVersion.String(), Kind: "UpgradeConfig", Name: "weekly", UID: "config", Controller: new(true)}},
		},
		Spec: maintenancev1beta1.UpgradeJobSpec{StartAfter: "2027-03-02T21:00:00Z", StartBefore: "2027-03-02T22:00:00Z"},
	}
	unchanged := func(*maintenancev1beta1.UpgradeConfig) {}
	elsewhere := holidays()
	elsewhere.Namespace = "other"
	for name, tc := range map[string]struct {
		job          *maintenancev1beta1.UpgradeJob
		cached, live []client.Object
		outcome      string
		reason       string
	}{
		"by nothing":                    {slot, []client.Object{config(unchanged)}, nil, "passed", "Done"},
		"by a window":                   {slot, []client.Object{config(unchanged), holidays()}, []client.Object{config(unchanged), holidays()}, "failed", maintenance.ReasonSuspended},
		"by a window of the cache only": {slot, []client.Object{config(unchanged), holidays()}, []client.Object{config(unchanged)}, "passed", "Done"},
		"by a window elsewhere":         {slot, []client.Object{config(unchanged), elsewhere}, nil, "passed", "Done"},
		"by its config":                 {slot, []client.Object{config(suspend)}, []client.Object{config(suspend)}, "failed", maintenance.ReasonSuspended},
		"by another schedule":           {slot, []client.Object{config(move)}, []client.Object{config(move)}, "failed", maintenance.ReasonRescheduled},
		"config deleted":                {slot, nil, nil, "waiting", "ConfigDeleted"},
		"config created again":          {slot, []client.Object{config(func(c *maintenancev1beta1.UpgradeConfig) { c.UID = "another" })}, []client.Object{config(func(c *maintenancev1beta1.UpgradeConfig) { c.UID = "another" })}, "waiting", "ConfigDeleted"},
		"made by hand":                  {&maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades"}}, []client.Object{config(suspend)}, nil, "passed", "Done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cached, live := simulation.NewFakeClient(t, tc.cached...), simulation.NewFakeClient(t, tc.live...)
			got, err := window.FailIfSuspended(cached, live, tc.job, start)(t.Context(), engine.Run{Now: start})
			if err != nil {
				t.Fatal(err)
			}
			outcome := "waiting"
			switch {
			case got.Passed():
				outcome = "passed"
			case got.Failed():
				outcome = "failed"
			}
			if outcome != tc.outcome || got.Reason() != tc.reason {
				t.Errorf("%s, %s: %s; want %s, %s", outcome, got.Reason(), got.Message(), tc.outcome, tc.reason)
			}
		})
	}
}

func suspend(c *maintenancev1beta1.UpgradeConfig) { c.Spec.Schedule.Suspend = new(true) }
func move(c *maintenancev1beta1.UpgradeConfig)    { c.Spec.Schedule.Cron = "0 22 * * 2" }

// Windows are listed from the API server page by page, and the UpgradeConfig is read by name.
func TestFailIfSuspended_reads_pages(t *testing.T) {
	t.Parallel()
	job := &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "upgrades", Name: "slot", Labels: map[string]string{maintenancev1beta1.SlotLabel: "x"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: maintenancev1beta1.GroupVersion.String(), Kind: "UpgradeConfig", Name: "weekly", UID: "config", Controller: new(true)}},
		},
		Spec: maintenancev1beta1.UpgradeJobSpec{StartAfter: "2027-03-02T21:00:00Z", StartBefore: "2027-03-02T22:00:00Z"},
	}
	owner := config(func(*maintenancev1beta1.UpgradeConfig) {})
	live := interceptor.NewClient(simulation.NewFakeClient(t, owner), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var options client.ListOptions
			options.ApplyOptions(opts)
			page, ok := list.(*maintenancev1beta1.UpgradeSuspensionWindowList)
			if !ok || options.Limit == 0 || options.Namespace != "upgrades" {
				return fmt.Errorf("unexpected list of %T (%+v)", list, options)
			}
			if options.Continue == "" {
				page.Continue = "more"
				return nil
			}
			page.Items = []maintenancev1beta1.UpgradeSuspensionWindow{*holidays()}
			return nil
		},
	})
	got, err := window.FailIfSuspended(simulation.NewFakeClient(t, owner, holidays()), live, job, start)(t.Context(), engine.Run{Now: start})
	if err != nil || !got.Failed() || got.Reason() != maintenance.ReasonSuspended {
		t.Errorf("%s: %s, %v", got.Reason(), got.Message(), err)
	}
}
