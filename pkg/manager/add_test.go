// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

func keep(obj any) (any, error) { return obj, nil }

func drop(any) (any, error) { return nil, nil }

func reads(name string, kinds ...manager.Kind) manager.Controller {
	return manager.Controller{Name: name, Reads: kinds}
}

func TestKindsOfControllers(t *testing.T) {
	t.Parallel()
	node := manager.Kind{Object: &corev1.Node{}, Transform: keep}
	lease := manager.Kind{Object: &coordinationv1.Lease{}, Namespaces: []string{"upgrades"}, Name: "lock"}
	for name, tc := range map[string]struct {
		controllers []manager.Controller
		want        int
		conflict    string
	}{
		"none":                    {},
		"of one controller":       {controllers: []manager.Controller{reads("a", node, lease)}, want: 2},
		"shared by two":           {controllers: []manager.Controller{reads("a", node), reads("b", node, lease)}, want: 2},
		"with another transform":  {controllers: []manager.Controller{reads("a", node), reads("b", manager.Kind{Object: &corev1.Node{}, Transform: drop})}, conflict: "controller b"},
		"without its transform":   {controllers: []manager.Controller{reads("a", node), reads("b", manager.Kind{Object: &corev1.Node{}})}, conflict: "*v1.Node"},
		"in another namespace":    {controllers: []manager.Controller{reads("a", lease), reads("b", manager.Kind{Object: &coordinationv1.Lease{}, Name: "lock"})}, conflict: "*v1.Lease"},
		"with another name":       {controllers: []manager.Controller{reads("a", lease), reads("b", manager.Kind{Object: &coordinationv1.Lease{}, Namespaces: []string{"upgrades"}})}, conflict: "*v1.Lease"},
		"with other labels":       {controllers: []manager.Controller{reads("a", lease), reads("b", manager.Kind{Object: &coordinationv1.Lease{}, Namespaces: lease.Namespaces, Name: "lock", Labels: map[string]string{"a": "b"}})}, conflict: "*v1.Lease"},
		"with another label":      {controllers: []manager.Controller{reads("a", lease), reads("b", manager.Kind{Object: &coordinationv1.Lease{}, Namespaces: lease.Namespaces, Name: "lock", HasLabel: "a"})}, conflict: "*v1.Lease"},
		"in the same declaration": {controllers: []manager.Controller{reads("a", node, manager.Kind{Object: &corev1.Node{}})}, conflict: "controller a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kinds, err := manager.Kinds(tc.controllers...)
			switch {
			case tc.conflict == "" && (err != nil || len(kinds) != tc.want):
				t.Errorf("got %d kinds, want %d: %v", len(kinds), tc.want, err)
			case tc.conflict != "" && (err == nil || !strings.Contains(err.Error(), tc.conflict)):
				t.Errorf("got %v, want an error that names %s", err, tc.conflict)
			}
		})
	}
}

func TestCacheHoldsOnlyWhatIsDeclared(t *testing.T) {
	t.Parallel()
	options := manager.CacheOptions([]manager.Kind{
		{Object: &corev1.Node{}, Transform: keep},
		{Object: &coordinationv1.Lease{}, Namespaces: []string{"upgrades"}, Name: "lock", Labels: map[string]string{"a": "b"}},
	})
	if !options.ReaderFailOnMissingInformer {
		t.Error("a read of a kind that no controller declares starts a watch")
	}
	by := map[string]cache.ByObject{}
	for object, config := range options.ByObject {
		by[nameOf(object)] = config
	}
	if len(by) != 2 || by["Node"].Transform == nil || by["Node"].Field != nil || len(by["Node"].Namespaces) != 0 {
		t.Errorf("nodes are cached with %+v", by["Node"])
	}
	lease := by["Lease"]
	if _, in := lease.Namespaces["upgrades"]; !in || len(lease.Namespaces) != 1 || lease.Field == nil || lease.Field.String() != "metadata.name=lock" ||
		lease.Label == nil || lease.Label.String() != "a=b" || by["Node"].Label != nil {
		t.Errorf("leases are cached with %+v", lease)
	}
}

func nameOf(object client.Object) string {
	switch object.(type) {
	case *corev1.Node:
		return "Node"
	case *coordinationv1.Lease:
		return "Lease"
	}
	return "another"
}

func TestDeclaredKindsAndTheirListsAreMappedWithoutDiscovery(t *testing.T) {
	t.Parallel()
	apiServer := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the mapper requests %s", r.URL)
	}))
	t.Cleanup(apiServer.Close)
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper, err := manager.MapperProvider(scheme, []manager.Kind{{Object: &coordinationv1.Lease{}}})(&rest.Config{Host: apiServer.URL}, apiServer.Client())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Lease", "LeaseList"} {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: coordinationv1.GroupName, Kind: kind}, "v1")
		if err != nil || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			t.Errorf("%s is mapped to %+v, want a kind in namespaces: %v", kind, mapping, err)
		}
	}
}

func TestKindsMappedAtTheSameTimeAreDiscoveredInTwoRequests(t *testing.T) {
	t.Parallel()
	groups := map[string]string{
		"/api":  `{"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"events","scope":"Namespaced","responseKind":{"version":"v1","kind":"Event"}}]}]}`,
		"/apis": `{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[{"resource":"deployments","scope":"Namespaced","responseKind":{"group":"apps","version":"v1","kind":"Deployment"}}]}]}`,
	}
	var mu sync.Mutex
	requests := map[string]int{}
	apiServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests[r.URL.Path]++
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[%s]}`, groups[r.URL.Path])
	}))
	t.Cleanup(apiServer.Close)
	const processes = 1000 // in a few of them, several callers find nothing before the first one discovers
	for range processes {
		mapper, err := manager.MapperProvider(runtime.NewScheme(), nil)(&rest.Config{Host: apiServer.URL}, apiServer.Client())
		if err != nil {
			t.Fatal(err)
		}
		var start, done sync.WaitGroup
		start.Add(1)
		for i := range 20 {
			kind := []schema.GroupKind{{Kind: "Event"}, {Group: "apps", Kind: "Deployment"}}[i%2]
			done.Go(func() {
				start.Wait()
				if _, err := mapper.RESTMapping(kind, "v1"); err != nil {
					t.Error(err)
				}
			})
		}
		start.Done()
		done.Wait()
	}
	if want := map[string]int{"/api": processes, "/apis": processes}; !maps.Equal(requests, want) {
		t.Errorf("%d processes requested %v, want %v", processes, requests, want)
	}
}

func TestSchemeHasTheKindsOfAllControllers(t *testing.T) {
	t.Parallel()
	scheme, err := manager.Scheme(
		manager.Controller{Name: "a", AddToScheme: []func(*runtime.Scheme) error{corev1.AddToScheme}},
		manager.Controller{Name: "b", AddToScheme: []func(*runtime.Scheme) error{coordinationv1.AddToScheme, corev1.AddToScheme}},
		reads("c", manager.Kind{Object: &policyv1.PodDisruptionBudget{}, AddToScheme: policyv1.AddToScheme}),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []runtime.Object{&corev1.Node{}, &coordinationv1.Lease{}, &policyv1.PodDisruptionBudget{}} {
		if _, _, err := scheme.ObjectKinds(object); err != nil {
			t.Error(err)
		}
	}
}

func TestSelfRequestsTheObject(t *testing.T) {
	t.Parallel()
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = "upgrades", "lock"
	got := manager.Self(t.Context(), lease)
	if len(got) != 1 || got[0].NamespacedName != client.ObjectKeyFromObject(lease) {
		t.Errorf("requested %v", got)
	}
}

func TestKind_selector(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind manager.Kind
		want string
	}{
		"labels":           {manager.Kind{Labels: map[string]string{"a": "b"}}, "a=b"},
		"label":            {manager.Kind{HasLabel: "c"}, "c"},
		"labels and label": {manager.Kind{Labels: map[string]string{"a": "b"}, HasLabel: "c"}, "a=b,c"},
	} {
		if got := tc.kind.Selector(); got == nil || got.String() != tc.want {
			t.Errorf("%s: got %v, want %s", name, got, tc.want)
		}
	}
	if got := (&manager.Kind{}).Selector(); got != nil {
		t.Errorf("without labels: got %v", got)
	}
	if invalid := (&manager.Kind{HasLabel: "not a label"}).Selector(); invalid.Matches(labels.Set{"not a label": ""}) || invalid.Empty() {
		t.Errorf("invalid label: got %v", invalid)
	}
}
