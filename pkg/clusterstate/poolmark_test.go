// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

func TestParsePoolMark(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 3, 2, 22, 0, 0, 0, time.UTC)
	for text, want := range map[string]clusterstate.PoolMark{
		"3f9c2ab0-7f5e/2/2027-03-02T22:00:00Z/2027-03-02T23:00:00Z": {OwnerUID: "3f9c2ab0-7f5e", Attempt: 2, ReleaseAfter: at, ReleaseBefore: at.Add(time.Hour)},
		"uid/1/2027-03-02T22:00:00Z/2027-03-02T22:00:00Z":           {OwnerUID: "uid", Attempt: 1, ReleaseAfter: at, ReleaseBefore: at},
		"uid/1/never/2027-03-02T22:00:00Z":                          {OwnerUID: "uid", Attempt: 1, KeptSince: at},
		"uid/10/never/2027-03-02T22:00:00Z":                         {OwnerUID: "uid", Attempt: 10, KeptSince: at},
	} {
		if got, ok := clusterstate.ParsePoolMark(text); !ok || got != want || got.String() != text {
			t.Errorf("%s is %v, %t, %s", text, got, ok, cmp.Diff(want, got))
		}
	}
	for name, text := range map[string]string{
		"empty":                     "",
		"anything":                  "true",
		"no UID":                    "/1/2027-03-02T22:00:00Z/2027-03-02T23:00:00Z",
		"attempt 0":                 "uid/0/2027-03-02T22:00:00Z/2027-03-02T23:00:00Z",
		"attempt with a sign":       "uid/+1/2027-03-02T22:00:00Z/2027-03-02T23:00:00Z",
		"attempt in another base":   "uid/1a/2027-03-02T22:00:00Z/2027-03-02T23:00:00Z",
		"attempt out of range":      "uid/4294967297/2027-03-02T22:00:00Z/2027-03-02T23:00:00Z",
		"times in the wrong order":  "uid/1/2027-03-02T23:00:00Z/2027-03-02T22:00:00Z",
		"offset":                    "uid/1/2027-03-02T22:00:00+01:00/2027-03-02T23:00:00Z",
		"fraction of a second":      "uid/1/2027-03-02T22:00:00.5Z/2027-03-02T23:00:00Z",
		"no end":                    "uid/1/2027-03-02T22:00:00Z/never",
		"never, without a time":     "uid/1/never/",
		"never, since year 1":       "uid/1/never/0001-01-01T00:00:00Z",
		"one part too many":         "uid/1/2027-03-02T22:00:00Z/2027-03-02T23:00:00Z/",
		"day that does not exist":   "uid/1/2027-02-30T22:00:00Z/2027-03-02T23:00:00Z",
		"space":                     " uid/1/2027-03-02T22:00:00Z/2027-03-02T23:00:00Z",
		"UID that is too long":      strings.Repeat("u", 129) + "/1/2027-03-02T22:00:00Z/2027-03-02T23:00:00Z",
		"UID with a line separator": "u\nid/1/2027-03-02T22:00:00Z/2027-03-02T23:00:00Z",
	} {
		if got, ok := clusterstate.ParsePoolMark(text); ok {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func FuzzParsePoolMark(f *testing.F) {
	f.Add("3f9c2ab0-7f5e/2/2027-03-02T22:00:00Z/2027-03-02T23:00:00Z")
	f.Add("uid/1/never/2027-03-02T22:00:00Z")
	f.Add("uid/1/2027-03-02T22:00:00Z/never")
	f.Fuzz(func(t *testing.T, text string) {
		mark, ok := clusterstate.ParsePoolMark(text)
		switch {
		case !ok && mark != (clusterstate.PoolMark{}):
			t.Errorf("invalid, but %v", mark)
		case ok && mark.String() != text:
			t.Errorf("%q is read as %q", text, mark)
		case ok && mark.Kept() == (!mark.ReleaseAfter.IsZero() || !mark.ReleaseBefore.IsZero()):
			t.Errorf("%q has a window and no end, or neither: %+v", text, mark)
		case ok && mark.ReleaseBefore.Before(mark.ReleaseAfter):
			t.Errorf("%q ends before it begins", text)
		}
	})
}

func TestPool_mark_and_labels(t *testing.T) {
	t.Parallel()
	const valid = "uid/1/2027-03-02T22:00:00Z/2027-03-02T23:00:00Z"
	for name, tc := range map[string]struct {
		mark            string
		paused          bool
		labels          map[string]string
		managers        []string // of spec.paused
		delayed, marked bool
		tooLong         bool
	}{
		"paused by the operator":                            {mark: valid, paused: true, labels: map[string]string{"name": "night"}, delayed: true, marked: true},
		"paused after a failure":                            {mark: "uid/1/never/2027-03-02T22:00:00Z", paused: true, marked: true},
		"paused by a user":                                  {paused: true},
		"paused by a user, with a malformed mark":           {mark: "uid/1/2027-03-02T22:00:00Z", paused: true},
		"paused by a user, with an endless mark":            {mark: strings.Repeat(valid, 1000), paused: true},
		"unpaused by a user":                                {mark: valid},
		"paused by the operator, as the API server records": {mark: valid, paused: true, managers: []string{"managed-upgrade-operator"}, delayed: true, marked: true},
		"paused by a user, with the mark of the operator":   {mark: valid, paused: true, managers: []string{"kubectl-patch"}},
		"paused by the operator and by another client":      {mark: valid, paused: true, managers: []string{"managed-upgrade-operator", "gitops"}},
		"labels of 17 KiB":                                  {labels: map[string]string{"name": strings.Repeat("x", 17<<10)}, tooLong: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "night", Labels: tc.labels, Annotations: map[string]string{"other": "x"}}}
			object.Spec.Paused = tc.paused
			object.ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: "machine-config-controller", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:configuration":{".":{},"f:name":{}}}}`)}},
			}
			for _, manager := range tc.managers {
				object.ManagedFields = append(object.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:paused":{}}}`)}})
			}
			if tc.mark != "" {
				object.Annotations[clusterstate.AnnotationPausedBy] = tc.mark
			}
			for range 2 { // applying a transform twice must not change the result
				if _, err := clusterstate.StripPool(object); err != nil {
					t.Fatal(err)
				}
			}
			pool := clusterstate.NewPool(object)
			if pool.Delayed() != tc.delayed || pool.PausedByMark() != tc.marked || pool.LabelsTooLong != tc.tooLong {
				t.Errorf("got delayed %t, marked %t, labels too long %t", pool.Delayed(), pool.PausedByMark(), pool.LabelsTooLong)
			}
			if !tc.tooLong && !cmp.Equal(pool.Labels, tc.labels) {
				t.Errorf("the cached labels differ: %s", cmp.Diff(tc.labels, pool.Labels))
			}
		})
	}
}
