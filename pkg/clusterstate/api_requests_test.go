// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiserverv1 "github.com/openshift/api/apiserver/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func TestRemovedBy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		removedIn, release string
		want               clusterstate.Answer
	}{
		"before the release":           {"1.31", "4.19.0", clusterstate.Yes},
		"in the release":               {"1.32", "4.19.0-rc.1", clusterstate.Yes},
		"in the next release":          {"1.33", "4.19.9", clusterstate.No},
		"another major of OpenShift":   {"1.40", "5.0.1", clusterstate.Unknown},
		"another major of Kubernetes":  {"2.0", "4.19.0", clusterstate.Unknown},
		"a release that is no version": {"1.32", "latest", clusterstate.Unknown},
		"a removal that is no version": {"soon", "4.19.0", clusterstate.Unknown},
		"a removal without a minor":    {"1", "4.19.0", clusterstate.Unknown},
	} {
		if got := (clusterstate.DeprecatedAPI{RemovedIn: tc.removedIn}).RemovedBy(tc.release); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

func TestListDeprecatedAPIs_counts_users(t *testing.T) {
	t.Parallel()
	by := func(name string, requests int64) apiserverv1.PerUserAPIRequestCount {
		return apiserverv1.PerUserAPIRequestCount{UserName: name, RequestCount: requests}
	}
	const collector = "system:serviceaccount:kube-system:generic-garbage-collector"
	for name, tc := range map[string]struct {
		total int64
		users []apiserverv1.PerUserAPIRequestCount
		want  clusterstate.DeprecatedAPI
	}{
		"a controller of everything": {5, []apiserverv1.PerUserAPIRequestCount{by(collector, 5)}, clusterstate.DeprecatedAPI{}},
		"a user":                     {7, []apiserverv1.PerUserAPIRequestCount{by(collector, 5), by("b", 1), by("a", 1)}, clusterstate.DeprecatedAPI{Requests: 2, Users: []string{"a", "b"}}},
		"a user that is not listed":  {9, []apiserverv1.PerUserAPIRequestCount{by("a", 1)}, clusterstate.DeprecatedAPI{Requests: 9, Users: []string{"a"}}},
		"a total that lags behind":   {5, []apiserverv1.PerUserAPIRequestCount{by(collector, 5), by("a", 1)}, clusterstate.DeprecatedAPI{Requests: 1, Users: []string{"a"}}},
		"a user without requests":    {5, []apiserverv1.PerUserAPIRequestCount{by(collector, 5), by("a", 0)}, clusterstate.DeprecatedAPI{}},
	} {
		count := &apiserverv1.APIRequestCount{ObjectMeta: metav1.ObjectMeta{Name: "cronjobs.v1beta1.batch"}}
		count.Status.RemovedInRelease, count.Status.RequestCount = "1.25", tc.total
		count.Status.Last24h = []apiserverv1.PerResourceAPIRequestLog{{ByNode: []apiserverv1.PerNodeAPIRequestLog{{ByUser: tc.users}}}}
		found, err := clusterstate.ListDeprecatedAPIs(t.Context(), simulation.NewFakeClient(t, count))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", name, found, err)
		}
		tc.want.Resource, tc.want.RemovedIn = count.Name, "1.25"
		if diff := cmp.Diff(tc.want, found[0], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
