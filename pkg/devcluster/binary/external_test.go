// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
)

func TestPoller_reports_each_change_once(t *testing.T) {
	t.Parallel()
	state := func(id, state string) *unstructured.Unstructured {
		return scenario.NewExternal(scenario.KindSilence, map[string]any{"state": state}, id, id)
	}
	var events []string
	p := &poller{handlers: []scenario.Handler{func(object *unstructured.Unstructured, deleted bool) {
		events = append(events, fmt.Sprintf("%s %s deleted: %t", object.GetName(), object.Object["state"], deleted))
	}}}
	for _, step := range []struct {
		found []*unstructured.Unstructured
		want  []string
	}{
		{nil, nil},
		{[]*unstructured.Unstructured{state("a", "active"), state("b", "active")}, []string{"a active deleted: false", "b active deleted: false"}},
		{[]*unstructured.Unstructured{state("a", "active"), state("b", "expired")}, []string{"b expired deleted: false"}},
		{[]*unstructured.Unstructured{state("b", "expired")}, []string{"a active deleted: true"}},
		{[]*unstructured.Unstructured{state("b", "expired")}, nil},
	} {
		events = nil
		p.update(step.found)
		if diff := cmp.Diff(step.want, events); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestAlertmanager_objects(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code   int
		answer string
		want   []string // namespace, name and UID
		fails  bool
	}{
		"alerts":                 {http.StatusOK, `[{"fingerprint": "1", "labels": {"alertname": "Smoke", "namespace": "kitchen"}}, {"fingerprint": "2", "labels": {}}]`, []string{"kitchen/Smoke 1", "/ 2"}, false},
		"none":                   {http.StatusOK, `[]`, nil, false},
		"response is not a list": {http.StatusOK, `{}`, nil, true},
		"error status":           {http.StatusServiceUnavailable, `[]`, nil, true},
		"empty response":         {http.StatusOK, ``, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.code)
				_, _ = w.Write([]byte(tc.answer)) // a failed write fails the test through the client
			}))
			defer server.Close()
			found, err := fromAlertmanager(t.Context(), scenario.KindAlert, server.URL, "labels.alertname", "fingerprint")
			if (err != nil) != tc.fails {
				t.Errorf("the error is %v", err)
			}
			var got []string
			for _, object := range found {
				got = append(got, object.GetNamespace()+"/"+object.GetName()+" "+string(object.GetUID()))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
