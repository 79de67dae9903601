// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && olm

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm"
	simulatedolm "github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/olm"
)

const (
	// olmSettle is how long the real Operator Lifecycle Manager has to come to rest. It limits its requests, and retries an
	// InstallPlan for a minute.
	olmSettle = 3 * time.Minute
	// olmRest is how long nothing must change then.
	olmRest = 2 * time.Second
)

// olmPackages lists the releases of the packages in the catalog. The last release of unpackable is an image that
// cannot be unpacked, and the last one of uninstallable contains an object that the API server rejects.
var olmPackages = map[string][]string{
	"a": {"a.v1", "a.v2", "a.v3"}, "b": {"b.v1", "b.v2"}, "c": {"c.v1"},
	"unpackable": {"unpackable.v1", "unpackable.v2"}, "uninstallable": {"uninstallable.v1", "uninstallable.v2"},
}

// olmCases returns cases by the name of their namespace. Each starts with the first releases of some packages. A step is
// "offer" (the catalog has all releases from now on), "approve" (the InstallPlan that waits), "remove" (the catalog), or
// the approval of a package's Subscription, which is created if it does not exist.
func olmCases() map[string][]string {
	return map[string][]string{
		"manual-beside-automatic":  {"a Automatic", "b Manual", "offer", "approve"},
		"manual-without-a-release": {"a Automatic", "c Manual", "offer", "approve"},
		"becomes-automatic":        {"a Manual", "offer", "a Automatic", "approve"},
		"unknown-package":          {"a Automatic", "unknown Automatic", "offer"},
		"removed-catalog":          {"a Manual", "remove", "offer"},
		"removed-during-approval":  {"a Manual", "offer", "remove", "approve", "offer"},
		"unpack-fails":             {"unpackable Automatic", "b Automatic", "offer"},
		"plan-fails":               {"uninstallable Automatic", "offer"},
	}
}

// simulatesOLM makes the same changes in the real and the simulated Operator Lifecycle Manager, and compares the states
// in which both come to rest, and those of the Subscriptions in between.
func (w *olmWorld) simulatesOLM(t *testing.T) {
	t.Helper()
	first, all := w.serveCatalog(t, "first", olmCatalog(1)), w.serveCatalog(t, "all", olmCatalog(3))
	for name, steps := range olmCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			actual := &realOLM{w: w, namespace: name, first: first, all: all}
			actual.start(t)
			simulated := newSimulatedOLM(name)
			for i, step := range steps {
				simulated.do(t, step)
				actual.do(t, step)
				want := simulated.settle(t)
				if got, same := actual.reaches(t, want); !same {
					t.Errorf("step %d, %s (-simulated +real):\n%s", i, step, cmp.Diff(want, got))
				}
			}
			if diff := cmp.Diff(simulated.states.of(), actual.states.of()); diff != "" {
				t.Errorf("states of the Subscriptions (-simulated +real):\n%s", diff)
			}
		})
	}
}

// olmStates records the states of Subscriptions from the first installed release on.
type olmStates struct {
	sync.Mutex

	bySubscription map[string][]string
}

func (s *olmStates) add(subscription *unstructured.Unstructured) {
	s.Lock()
	defer s.Unlock()
	name, state := subscription.GetName(), olmState(subscription)
	if known := s.bySubscription[name]; nested(subscription, "status", "installedCSV") != "" && (len(known) == 0 || known[len(known)-1] != state) {
		if s.bySubscription == nil {
			s.bySubscription = map[string][]string{}
		}
		s.bySubscription[name] = append(known, state)
	}
}

func (s *olmStates) of() map[string][]string {
	s.Lock()
	defer s.Unlock()
	return maps.Clone(s.bySubscription)
}

func nested(o *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, path...)
	return value
}

// olmList lists the objects of a kind.
func olmList(t *testing.T, c client.Client, kind schema.GroupVersionKind, namespace string) []*unstructured.Unstructured {
	t.Helper()
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	mustSucceed(t, c.List(t.Context(), &list, client.InNamespace(namespace)))
	all := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all
}

// olmView describes what the Operator Lifecycle Manager has made of a namespace. The InstallPlans of the first releases
// are omitted, because the simulator installs them without.
func olmView(t *testing.T, c client.Client, namespace string) []string {
	t.Helper()
	var view []string
	plans := map[string]string{}
	for _, plan := range olmList(t, c, simulatedolm.InstallPlans, namespace) {
		names, _, _ := unstructured.NestedStringSlice(plan.Object, "spec", "clusterServiceVersionNames")
		if slices.Sort(names); strings.HasSuffix(names[0], ".v1") {
			continue
		}
		approved, _, _ := unstructured.NestedBool(plan.Object, "spec", "approved")
		plans[plan.GetName()] = strings.Join(names, "+")
		view = append(view, fmt.Sprintf("plan of %s: %s, approved %t, %s%s", plans[plan.GetName()], nested(plan, "spec", "approval"), approved,
			nested(plan, "status", "phase"), olmConditions(plan, "Installed")))
	}
	for _, subscription := range olmList(t, c, simulatedolm.Subscriptions, namespace) {
		view = append(view, fmt.Sprintf("%s: %s, plan of %q%s", subscription.GetName(), olmState(subscription), plans[nested(subscription, "status", "installPlanRef", "name")],
			olmConditions(subscription, "ResolutionFailed", "CatalogSourcesUnhealthy", "BundleUnpackFailed", "BundleUnpacking")))
	}
	for _, csv := range olmList(t, c, simulatedolm.CSVs, namespace) {
		view = append(view, fmt.Sprintf("%s: %s %s", csv.GetName(), nested(csv, "status", "phase"), nested(csv, "status", "reason")))
	}
	slices.Sort(view)
	return view
}

// olmState describes the state of a Subscription.
func olmState(s *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s, installed %q", nested(s, "status", "state"), nested(s, "status", "currentCSV"), nested(s, "status", "installedCSV"))
}

// olmConditions returns the conditions of some types that tell of a problem. Installed is one if it is False.
func olmConditions(o *unstructured.Unstructured, names ...string) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var all []string
	for _, each := range conditions {
		c, _ := each.(map[string]any)
		if name, _ := c["type"].(string); slices.Contains(names, name) && (c["status"] == "False") == (name == "Installed") {
			all = append(all, fmt.Sprintf(", %s=%v %v", name, c["status"], c["reason"]))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// olmCatalog returns a file-based catalog with the first releases of each package, at most n.
func olmCatalog(n int) []byte {
	var catalog bytes.Buffer
	add := func(document map[string]any) {
		data, _ := json.Marshal(document) // a tree of plain values
		catalog.Write(append(data, '\n'))
	}
	for name, releases := range olmPackages {
		var entries []any
		for i, release := range releases[:min(n, len(releases))] {
			entry, bundle := map[string]any{"name": release}, map[string]any{"schema": "olm.bundle", "package": name, "name": release}
			version := fmt.Sprintf("%d.0.0", i+1)
			properties := []any{map[string]any{"type": "olm.package", "value": map[string]any{"packageName": name, "version": version}}}
			spec := map[string]any{
				"displayName": name, "version": version, "installModes": []any{map[string]any{"type": "OwnNamespace", "supported": true}},
				"install": map[string]any{"strategy": "deployment", "spec": map[string]any{"deployments": []any{}}},
			}
			if i > 0 {
				entry["replaces"], spec["replaces"] = releases[i-1], releases[i-1]
			}
			objects := []any{map[string]any{
				"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": map[string]any{"name": release, "namespace": "placeholder"}, "spec": spec,
			}}
			switch release {
			case "uninstallable.v2":
				objects = append(objects, map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "Not_a_name"}, "spec": map[string]any{}})
			case "unpackable.v2":
				objects, bundle["image"] = nil, "registry.example.com/unpackable:v2"
			}
			for _, each := range objects {
				data, _ := json.Marshal(each) // a tree of plain values
				properties = append(properties, map[string]any{"type": "olm.bundle.object", "value": map[string]any{"data": data}})
			}
			bundle["properties"] = properties
			entries = append(entries, entry)
			add(bundle)
		}
		add(map[string]any{"schema": "olm.package", "name": name, "defaultChannel": "stable"})
		add(map[string]any{"schema": "olm.channel", "package": name, "name": "stable", "entries": entries})
	}
	return catalog.Bytes()
}

// olmSubscription returns the Subscription of a package.
func olmSubscription(namespace, name, approval string) *unstructured.Unstructured {
	return object(simulatedolm.Subscriptions, namespace, name, map[string]any{"spec": map[string]any{
		"name": name, "channel": "stable", "source": "catalog", "sourceNamespace": namespace, "installPlanApproval": approval,
	}})
}

// olmApproval returns the patch that sets the approval of a Subscription.
func olmApproval(approval string) client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"installPlanApproval": %q}}`, approval))
}

// approveOLM approves the InstallPlans of the Subscriptions that wait for approval, and returns how many. An InstallPlan
// that is approved before its Subscriptions refer to it may be created again.
func approveOLM(t *testing.T, c client.Client, namespace string) int {
	t.Helper()
	waiting := map[string]*unstructured.Unstructured{}
	for _, subscription := range olmList(t, c, simulatedolm.Subscriptions, namespace) {
		name := nested(subscription, "status", "installPlanRef", "name")
		plan := object(simulatedolm.InstallPlans, namespace, name, nil)
		if name == "" {
			continue
		}
		mustSucceed(t, c.Get(t.Context(), client.ObjectKeyFromObject(plan), plan))
		if nested(plan, "status", "phase") == "RequiresApproval" {
			waiting[name] = plan
		}
	}
	for _, plan := range waiting {
		mustSucceed(t, c.Patch(t.Context(), plan, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"approved": true}}`))))
	}
	return len(waiting)
}

// simulatedOLM is a namespace with the simulated Operator Lifecycle Manager.
type simulatedOLM struct {
	namespace string
	client    client.Client
	simulator simulatedolm.Simulator
	states    olmStates
	offered   bool
}

func newSimulatedOLM(namespace string) *simulatedOLM {
	var withStatus []client.Object
	for _, kind := range []schema.GroupVersionKind{simulatedolm.Subscriptions, simulatedolm.InstallPlans, simulatedolm.CSVs, simulatedolm.Catalogs} {
		withStatus = append(withStatus, object(kind, "", "", nil))
	}
	c := fake.NewClientBuilder().WithScheme(olm.NewScheme()).WithRESTMapper(olm.Mapper()).WithStatusSubresource(withStatus...).
		WithObjects(object(simulatedolm.Catalogs, namespace, "catalog", nil)).Build()
	return &simulatedOLM{namespace: namespace, client: c, simulator: simulatedolm.Simulator{Client: c, Clock: clock.RealClock{}}}
}

func (s *simulatedOLM) do(t *testing.T, step string) {
	t.Helper()
	name, approval, isSubscription := strings.Cut(step, " ")
	catalog := object(simulatedolm.Catalogs, s.namespace, "catalog", nil)
	switch {
	case isSubscription:
		subscription := olmSubscription(s.namespace, name, approval)
		s.annotate(subscription)
		if err := s.client.Create(t.Context(), subscription); !apierrors.IsAlreadyExists(err) {
			mustSucceed(t, err)
			return
		}
		mustSucceed(t, s.client.Patch(t.Context(), subscription, olmApproval(approval)))
	case step == "approve":
		approveOLM(t, s.client, s.namespace)
	case step == "remove":
		mustSucceed(t, s.client.Delete(t.Context(), catalog))
	default:
		s.offered = true
		if err := s.client.Create(t.Context(), catalog); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		for _, subscription := range olmList(t, s.client, simulatedolm.Subscriptions, s.namespace) {
			s.annotate(subscription)
			mustSucceed(t, s.client.Update(t.Context(), subscription))
		}
	}
}

// annotate lets a Subscription say what its catalog has.
func (s *simulatedOLM) annotate(subscription *unstructured.Unstructured) {
	releases := olmPackages[subscription.GetName()]
	if !s.offered && len(releases) > 0 {
		releases = releases[:1]
	}
	subscription.SetAnnotations(map[string]string{
		simulatedolm.AnnotationReleases:  strings.Join(releases, " "),
		simulatedolm.AnnotationPlanFails: "uninstallable.v2", simulatedolm.AnnotationUnpackFails: "unpackable.v2",
	})
}

// settle lets the simulator act until nothing changes.
func (s *simulatedOLM) settle(t *testing.T) []string {
	t.Helper()
	var view []string
	for range 100 {
		mustSucceed(t, s.simulator.Advance(t.Context()))
		for _, subscription := range olmList(t, s.client, simulatedolm.Subscriptions, s.namespace) {
			s.states.add(subscription)
		}
		now := olmView(t, s.client, s.namespace)
		if slices.Equal(view, now) {
			return view
		}
		view = now
	}
	t.Fatalf("the simulator does not come to rest: %q", view)
	return nil
}

// realOLM is a namespace with the real Operator Lifecycle Manager.
type realOLM struct {
	w                     *olmWorld
	namespace, first, all string // the namespace, and the addresses of the catalogs
	states                olmStates
}

// start creates the namespace. No pod can run in it, so no image is unpacked.
func (r *realOLM) start(t *testing.T) {
	t.Helper()
	for _, created := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}},
		&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "no-pods"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}},
		object(schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1", Kind: "OperatorGroup"}, r.namespace, "own", map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"operatorframework.io/bundle-unpack-timeout": "1s"}},
			"spec":     map[string]any{"targetNamespaces": []any{r.namespace}},
		}),
	} {
		mustSucceed(t, r.w.client.Create(t.Context(), created))
	}
	r.w.catalogSource(t, r.namespace, r.first)
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(simulatedolm.Subscriptions.GroupVersion().WithKind("SubscriptionList"))
	watch, err := r.w.client.Watch(t.Context(), &list, client.InNamespace(r.namespace))
	mustSucceed(t, err)
	t.Cleanup(watch.Stop)
	go func() {
		for event := range watch.ResultChan() {
			if subscription, is := event.Object.(*unstructured.Unstructured); is {
				r.states.add(subscription)
			}
		}
	}()
}

func (r *realOLM) do(t *testing.T, step string) {
	t.Helper()
	name, approval, isSubscription := strings.Cut(step, " ")
	catalog := object(simulatedolm.Catalogs, r.namespace, "catalog", nil)
	switch {
	case isSubscription:
		subscription := olmSubscription(r.namespace, name, approval)
		err := r.w.client.Create(t.Context(), subscription)
		if apierrors.IsAlreadyExists(err) {
			err = r.w.client.Patch(t.Context(), subscription, olmApproval(approval))
		} else if mustSucceed(t, err); approval == "Manual" {
			eventually(t, olmLimit, "the first InstallPlan waits for approval", func(context.Context) error {
				if approveOLM(t, r.w.client, r.namespace) == 0 { //nolint:contextcheck // a request may outlast the limit
					return errors.New("no InstallPlan")
				}
				return nil
			})
		}
		mustSucceed(t, err)
	case step == "approve":
		if approveOLM(t, r.w.client, r.namespace) != 1 {
			t.Error("no InstallPlan, or more than one, waits for approval")
		}
	case step == "remove":
		mustSucceed(t, r.w.client.Delete(t.Context(), catalog))
	default:
		r.w.catalogSource(t, r.namespace, r.all)
	}
}

// reaches waits until the real namespace looks like the simulated one, and stays that way for a while. It returns what it
// looks like.
func (r *realOLM) reaches(t *testing.T, want []string) (got []string, same bool) {
	t.Helper()
	var since time.Time
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, olmSettle, true, func(context.Context) (bool, error) {
		if got = olmView(t, r.w.client, r.namespace); !slices.Equal(want, got) { //nolint:contextcheck // a request may outlast the limit
			since = time.Time{}
			return false, nil
		}
		if since.IsZero() {
			since = time.Now()
		}
		return time.Since(since) >= olmRest, nil
	})
	return got, err == nil
}
