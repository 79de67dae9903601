// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm"
	simulatedolm "github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/olm"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

const installTime, fails, planFails = simulatedolm.AnnotationInstallTime, simulatedolm.AnnotationFails, simulatedolm.AnnotationPlanFails

func TestApprover(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cluster          []client.Object
		include, exclude []string
		approvals        []string
		want             string // in the error; empty for success
		after            time.Duration
		printed          string
	}{
		"no Subscription":                    {printed: "Operators upgraded: 0 of 0."},
		"operator at its newest release":     {cluster: []client.Object{manual("a", "gitops", "g.v1")}, printed: "a/gitops: g.v1 is installed\n", after: time.Minute},
		"operator with a newer release":      {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2")}, approvals: []string{"a/install-g-v2"}, printed: "a/gitops: approving InstallPlan install-g-v2 with g.v2\na/gitops: g.v2 is installed\n", after: time.Minute + 5*time.Second},
		"releases one after the other":       {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2 g.v3")}, approvals: []string{"a/install-g-v2", "a/install-g-v3"}, after: time.Minute + 10*time.Second},
		"automatic approval":                 {cluster: []client.Object{automatic("gitops", "g.v1 g.v2", installTime, "1h")}, printed: "a/gitops: skipped: OLM approves its upgrades automatically\n"},
		"automatic one beside a manual one":  {cluster: []client.Object{automatic("gitops", "g.v1 g.v2"), manual("a", "quay", "q.v1")}, include: []string{"a/gitops"}, approvals: []string{"a/install-g-v2"}, printed: "Operators upgraded: 1 of 1.\n", after: time.Minute + 5*time.Second},
		"slow installation":                  {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2", installTime, "9m")}, approvals: []string{"a/install-g-v2"}, printed: "ClusterServiceVersion g.v2 is in phase Installing\n", after: 10 * time.Minute},
		"installation that takes too long":   {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2", installTime, "11m")}, approvals: []string{"a/install-g-v2"}, want: "a/gitops: ClusterServiceVersion g.v2 is in phase Installing", after: 10 * time.Minute},
		"installation that fails":            {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2", fails, "g.v2")}, approvals: []string{"a/install-g-v2"}, want: "a/gitops: ClusterServiceVersion g.v2 failed: InstallCheckFailed", after: 3*time.Minute + 5*time.Second},
		"operator that failed before":        {cluster: []client.Object{manual("a", "gitops", "g.v1", fails, "g.v1")}, want: "ClusterServiceVersion g.v1 failed", after: 3 * time.Minute},
		"InstallPlan that fails":             {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2", planFails, "g.v2")}, approvals: []string{"a/install-g-v2"}, want: "a/gitops: InstallPlan install-g-v2 failed: InstallComponentFailed", after: 3*time.Minute + 5*time.Second},
		"one that fails, and one that waits": {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2", fails, "g.v2"), manual("b", "quay", "q.v1 q.v2", installTime, "5m")}, approvals: []string{"a/install-g-v2", "b/install-q-v2"}, want: "not upgraded: 1 of 2: a/gitops", after: 6*time.Minute + 5*time.Second},
		"included by its exact name":         {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2"), manual("b", "gitops", "g.v1 g.v2"), manual("c", "gitops-extra", "e.v1 e.v2"), manual("d", "git", "i.v1 i.v2")}, include: []string{"a/gitops"}, approvals: []string{"a/install-g-v2"}, after: time.Minute + 5*time.Second},
		"two included ones":                  {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2"), manual("b", "quay", "q.v1 q.v2"), manual("c", "logs", "l.v1 l.v2")}, include: []string{"a/gitops", "b/quay"}, approvals: []string{"a/install-g-v2", "b/install-q-v2"}, after: time.Minute + 5*time.Second},
		"included one that is missing":       {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2")}, include: []string{"a/gitops", "b/quay"}, approvals: []string{"a/install-g-v2"}, printed: "b/quay: skipped: there is no such Subscription\n", after: time.Minute + 5*time.Second},
		"all but an excluded one":            {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2"), manual("b", "quay", "q.v1 q.v2")}, exclude: []string{"b/quay"}, approvals: []string{"a/install-g-v2"}, after: time.Minute + 5*time.Second},
		"one that is included and excluded":  {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2")}, include: []string{"a/gitops"}, exclude: []string{"a/gitops"}},
		"InstallPlan of two selected ones":   {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2"), manual("a", "quay", "q.v1 q.v2")}, approvals: []string{"a/install-g-v2"}, after: time.Minute + 5*time.Second},
		"InstallPlan shared with an excluded one": {
			cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2"), manual("a", "quay", "q.v1 q.v2"), manual("b", "logs", "l.v1 l.v2")}, exclude: []string{"a/quay"},
			approvals: []string{"b/install-l-v2"}, want: "not upgraded: 1 of 2: a/gitops: SharedInstallPlan: InstallPlan install-g-v2 also upgrades quay", after: time.Minute + 5*time.Second,
		},
		"InstallPlan shared with one that is not included":        {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2"), manual("a", "quay", "q.v1 q.v2")}, include: []string{"a/gitops"}, want: "SharedInstallPlan", after: time.Minute},
		"InstallPlan shared with an automatic one":                {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2"), automatic("quay", "q.v1 q.v2")}, include: []string{"a/gitops"}, approvals: []string{"a/install-g-v2"}, after: time.Minute + 5*time.Second},
		"InstallPlan shared with an automatic one, excluded":      {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2"), automatic("quay", "q.v1 q.v2")}, exclude: []string{"a/quay"}, want: "SharedInstallPlan", after: time.Minute},
		"excluded one with the same name in another namespace":    {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2"), manual("b", "gitops", "g.v1 g.v2")}, exclude: []string{"b/gitops"}, approvals: []string{"a/install-g-v2"}, after: time.Minute + 5*time.Second},
		"excluded one that has no newer release, same namespace ": {cluster: []client.Object{manual("a", "gitops", "g.v1 g.v2"), manual("a", "quay", "q.v1")}, exclude: []string{"a/quay"}, approvals: []string{"a/install-g-v2"}, after: time.Minute + 5*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.cluster...)
			printed, err := w.run(t.Context(), olm.Options{Timeout: 10 * time.Minute, Include: names(tc.include...), Exclude: names(tc.exclude...)})
			if diff := cmp.Diff(tc.approvals, w.approvals, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("approvals (-want +got):\n%s", diff)
			}
			if err != nil {
				golden.Texts(t, "", err.Error())
			}
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got %v, want success", err)
			case tc.want != "" && (!errors.Is(err, olm.ErrNotUpgraded) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if !strings.Contains(printed, tc.printed) {
				t.Errorf("printed\n%s\nwant %q in it", printed, tc.printed)
			}
			if got := w.Since(startTime); got != tc.after {
				t.Errorf("ended after %s, want %s", got, tc.after)
			}
		})
	}
}

// timeout contains the timeout for tests of faults.
var timeout = olm.Options{Timeout: 10 * time.Minute}

func TestApproverRetries(t *testing.T) {
	t.Parallel()
	group := schema.GroupResource{Group: "operators.coreos.com", Resource: "subscriptions"}
	unavailable := apierrors.NewServiceUnavailable("etcd has no leader")
	forbidden := apierrors.NewForbidden(group, "", errors.New("no RBAC policy matched"))
	for name, tc := range map[string]struct {
		readError, patchError error
		until                 time.Duration
		want                  string // in the error; empty for success
	}{
		"reads that fail for a minute":        {readError: unavailable, until: time.Minute},
		"permissions that come later":         {readError: forbidden, until: time.Minute},
		"reads that fail until the end":       {readError: forbidden, until: time.Hour, want: "listing the Subscriptions: subscriptions.operators.coreos.com is forbidden"},
		"conflicts for a minute":              {patchError: conflict("install-g-v2"), until: time.Minute},
		"approvals that fail for a minute":    {patchError: unavailable, until: time.Minute},
		"approvals that fail until the end":   {patchError: forbidden, until: time.Hour, want: "1 of 1: a/gitops: approving InstallPlan install-g-v2: subscriptions.operators.coreos.com is forbidden"},
		"approval whose response is an error": {patchError: apierrors.NewTimeoutError("lost", 1), until: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, manual("a", "gitops", "g.v1 g.v2"))
			fail := func(err error) error {
				if w.Since(startTime) < tc.until {
					return err
				}
				return nil
			}
			w.readError = func() error { return fail(tc.readError) }
			w.onPatch = func(string) error { return fail(tc.patchError) }
			_, err := w.run(t.Context(), timeout)
			if tc.want == "" {
				if err != nil || len(w.approvals) != 1 {
					t.Errorf("got %v and approvals %v, want success", err, w.approvals)
				}
				return
			}
			if !errors.Is(err, olm.ErrNotUpgraded) || !strings.Contains(err.Error(), tc.want) || w.Since(startTime) != timeout.Timeout {
				t.Errorf("got %v after %s, want %q", err, w.Since(startTime), tc.want)
			}
		})
	}
}

func TestInterruptedRunIsContinuedByTheNextOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, manual("a", "gitops", "g.v1 g.v2", installTime, "3m"))
	ctx, cancel := context.WithCancel(t.Context())
	w.onTick = func(elapsed time.Duration) {
		if elapsed > time.Minute {
			cancel()
		}
	}
	_, err := w.run(ctx, timeout)
	if !errors.Is(err, olm.ErrInterrupted) || errors.Is(err, olm.ErrNotUpgraded) {
		t.Fatalf("got %v, want an interruption", err)
	}
	w.onTick = nil
	if _, err := w.run(t.Context(), timeout); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"a/install-g-v2"}, w.approvals); diff != "" {
		t.Errorf("approvals of both runs (-want +got):\n%s", diff)
	}
}

// OLM writes the status of one Subscription after another, so the excluded Subscription may come
// last.
func TestExcludedSubscriptionWhoseStatusComesLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, manual("a", "gitops", "g.v1 g.v2"), manual("a", "quay", "q.v1"))
	plan := w.get(simulatedolm.InstallPlans, "install-g-v2")
	w.set(plan, []any{"g.v2", "q.v2"}, "spec", "clusterServiceVersionNames")
	w.onTick = func(time.Duration) {
		quay := w.get(simulatedolm.Subscriptions, "quay")
		w.set(quay, "q.v2", "status", "currentCSV")
	}
	_, err := w.run(t.Context(), olm.Options{Timeout: time.Minute, Exclude: names("a/quay")})
	if !errors.Is(err, olm.ErrNotUpgraded) || !strings.Contains(err.Error(), olm.ReasonSharedInstallPlan) || len(w.approvals) > 0 {
		t.Errorf("got %v and approvals %v, want a refusal", err, w.approvals)
	}
}

func TestInstallPlanThatReplacesAnExcludedRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, manual("a", "gitops", "g.v1 g.v2"), manual("a", "quay", "q.v1"))
	plan := w.get(simulatedolm.InstallPlans, "install-g-v2")
	w.set(plan, []any{map[string]any{"identifier": "q.v2", "replaces": "q.v1", "path": "p"}}, "status", "bundleLookups")
	_, err := w.run(t.Context(), olm.Options{Timeout: time.Minute, Exclude: names("a/quay")})
	if !errors.Is(err, olm.ErrNotUpgraded) || !strings.Contains(err.Error(), "also upgrades quay") || len(w.approvals) > 0 {
		t.Errorf("got %v and approvals %v, want a refusal", err, w.approvals)
	}
}

func TestInstallPlanWithADependency(t *testing.T) {
	t.Parallel()
	w := newWorld(t, manual("a", "gitops", "g.v1 g.v2"))
	plan := w.get(simulatedolm.InstallPlans, "install-g-v2")
	w.set(plan, []any{"g.v2", "dependency.v1"}, "spec", "clusterServiceVersionNames")
	printed, err := w.run(t.Context(), timeout)
	if err != nil || len(w.approvals) != 1 || w.Since(startTime) != 75*time.Second || !strings.Contains(printed, "waiting for OLM to report which operators") {
		t.Errorf("got %v and approvals %v after %s, want one after the others were observed:\n%s", err, w.approvals, w.Since(startTime), printed)
	}
}

// OLM retries a failed installation when its requirements change.
func TestFailureThatOLMRepairs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, manual("a", "gitops", "g.v1 g.v2", fails, "g.v2"))
	w.onTick = func(elapsed time.Duration) {
		if elapsed == time.Minute {
			repaired := w.get(simulatedolm.Subscriptions, "gitops")
			w.set(repaired, "", "metadata", "annotations", fails)
		}
	}
	if _, err := w.run(t.Context(), timeout); err != nil {
		t.Error(err)
	}
}

func TestApprovalOfAnInstallPlanThatChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, manual("a", "gitops", "g.v1 g.v2"), manual("a", "quay", "q.v1"))
	w.onPatch = func(name string) error { // between the read and the approval
		if plan := w.get(simulatedolm.InstallPlans, name); len(w.approvals) == 0 {
			w.set(plan, []any{"g.v2", "q.v2"}, "spec", "clusterServiceVersionNames")
			w.set(w.get(simulatedolm.Subscriptions, "quay"), "q.v2", "status", "currentCSV")
		}
		return nil
	}
	_, err := w.run(t.Context(), olm.Options{Timeout: time.Minute, Exclude: names("a/quay")})
	approved := w.get(simulatedolm.InstallPlans, "install-g-v2").Object["spec"].(map[string]any)["approved"]
	if !errors.Is(err, olm.ErrNotUpgraded) || approved != false {
		t.Errorf("got %v, and the InstallPlan is approved: %v; want a refusal", err, approved)
	}
}

func TestErrorFitsIntoTheTerminationMessage(t *testing.T) {
	t.Parallel()
	var cluster []client.Object
	for _, namespace := range []string{"a", "b", "c", "d", "e"} {
		release := namespace + strings.Repeat("x", 200)
		cluster = append(cluster, manual(namespace, "gitops", namespace+".v1 "+release, fails, release))
	}
	_, err := newWorld(t, cluster...).run(t.Context(), timeout)
	if err == nil || len(err.Error()) > 1900 || !strings.HasSuffix(err.Error(), "; and 2 more") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}
