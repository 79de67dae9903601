// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package poolrelease

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// paged returns a client that lists the metadata of objects in pages of two and records its
// requests.
func paged(t *testing.T, requests *[]string, objects ...client.Object) client.WithWatch {
	t.Helper()
	return interceptor.NewClient(simulation.NewFakeClient(t, objects...), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			*requests = append(*requests, "get "+key.String())
			return c.Get(ctx, key, object, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var options client.ListOptions
			options.ApplyOptions(opts)
			page, ok := list.(*metav1.PartialObjectMetadataList)
			if !ok || options.Limit == 0 {
				return fmt.Errorf("unpaged list of %T", list)
			}
			*requests = append(*requests, "list "+strings.TrimPrefix(page.Kind+" ", "UpgradeJobList ")+options.Namespace+" from "+options.Continue)
			from, _ := strconv.Atoi(options.Continue)
			if err := c.List(ctx, page, client.InNamespace(options.Namespace)); err != nil {
				return err
			}
			if all := page.Items[from:]; len(all) > 2 {
				page.Items, page.Continue = all[:2], strconv.Itoa(from+2)
			} else {
				page.Items = all
			}
			return nil
		},
	})
}

func TestAttemptLive(t *testing.T) {
	t.Parallel()
	job := func(namespace, name, uid string, finished bool) *maintenancev1beta1.UpgradeJob {
		record := history.Record{Version: "4.4.5", Attempt: 1, StartTime: &metav1.Time{Time: simulation.Start}}
		if finished {
			record.CompleteTime = &metav1.Time{Time: simulation.Start}
		}
		return &maintenancev1beta1.UpgradeJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)},
			Status:     maintenancev1beta1.UpgradeJobStatus{History: []history.Record{record}},
		}
	}
	others := []client.Object{job("a", "1", "1", false), job("a", "2", "2", false), job("a", "3", "3", false)}
	for name, tc := range map[string]struct {
		cached, live *maintenancev1beta1.UpgradeJob
		namespaces   []string
		active       bool
		requests     []string
	}{
		"ended":                        {cached: job("a", "x", "uid", true), live: job("a", "x", "uid", true), requests: []string{"get a/x"}},
		"ended in the cache only":      {cached: job("a", "x", "uid", true), live: job("a", "x", "uid", false), active: true, requests: []string{"get a/x"}},
		"deleted":                      {cached: job("a", "x", "uid", true), requests: []string{"get a/x"}},
		"created again":                {cached: job("a", "x", "uid", true), live: job("a", "x", "another", false), requests: []string{"get a/x"}},
		"not in the cache":             {live: job("b", "x", "uid", false), active: true, requests: []string{"list  from ", "list  from 2", "get b/x"}},
		"not in the cache, namespaces": {live: job("b", "x", "uid", false), namespaces: []string{"a", "b"}, active: true, requests: []string{"list a from ", "list a from 2", "list b from ", "get b/x"}},
		"nowhere":                      {requests: []string{"list  from ", "list  from 2", "list UpgradeConfigList  from "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var cached []client.Object
			live, requests := others, []string(nil)
			if tc.cached != nil {
				cached = []client.Object{tc.cached}
			}
			if tc.live != nil {
				live = append(live[:3:3], tc.live)
			}
			r := &Reconciler{Client: simulation.NewFakeClient(t, cached...), Live: paged(t, &requests, live...), WatchNamespaces: tc.namespaces}
			state, err := r.attemptLive(t.Context(), clusterstate.PoolMark{OwnerUID: "uid", Attempt: 1})
			if active := state != maintenance.AttemptEnded; err != nil || active != tc.active {
				t.Errorf("active is %t, %v", active, err)
			}
			if diff := cmp.Diff(tc.requests, requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
