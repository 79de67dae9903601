// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package clusterversion_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/clusterversion"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	m.Run()
}

// offsetClock is the real clock plus an offset.
type offsetClock struct{ offset atomic.Int64 }

func (c *offsetClock) Now() time.Time                  { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *offsetClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c *offsetClock) advance(d time.Duration)         { c.offset.Add(int64(d)) }

// testEnv is a cluster and a controller with the permissions of the operator.
type testEnv struct {
	t     *testing.T
	user  client.Client
	clock *offsetClock
}

func start(t *testing.T) *testEnv {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cluster, err := devcluster.Start(ctx, devcluster.Options{Dir: t.TempDir(), Spec: openshiftsim.ClusterSpec{Masters: 1, Workers: 1}})
	must(t, err)
	t.Cleanup(func() { must(t, cluster.Stop()) })
	must(t, cluster.Deploy(ctx, "../../.."))
	must(t, cluster.Apply(ctx, os.DirFS("../../../deploy/cluster-version-parameters"))) // required for fields of later releases
	scheme, err := devcluster.Scheme()
	must(t, errors.Join(err, maintenancev1beta1.AddToScheme(scheme)))
	e := &testEnv{t: t, clock: &offsetClock{}}
	e.user, err = client.New(cluster.RESTConfig(), client.Options{Scheme: scheme})
	must(t, err)

	access, err := cluster.ServiceAccountConfig(ctx, devcluster.OperatorNamespace, devcluster.OperatorServiceAccount)
	must(t, err)
	registered, err := metrics.NewClusterVersions(prometheus.NewPedanticRegistry())
	must(t, err)
	reconciler := &clusterversion.Reconciler{
		Clock: e.clock, Namespace: devcluster.OperatorNamespace, WatchNamespaces: []string{devcluster.OperatorNamespace}, Metrics: registered,
	}
	controller := reconciler.Controller()
	mgr, err := ctrl.NewManager(access, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, Cache: manager.CacheOptions(controller.Reads),
	})
	must(t, err)
	reconciler.Events = &notify.Events{Client: mgr.GetClient(), Clock: e.clock}
	must(t, manager.Add(mgr, controller))
	running, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
	})
	return e
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// set creates the ClusterVersion or changes its template.
func (e *testEnv) set(template map[string]any) {
	e.t.Helper()
	text, err := json.Marshal(template)
	must(e.t, err)
	must(e.t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object := &maintenancev1beta1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, Name: "version"}}
		err := e.user.Get(e.t.Context(), client.ObjectKeyFromObject(object), object)
		object.Spec.Template.Spec = runtime.RawExtension{Raw: text}
		if apierrors.IsNotFound(err) {
			return e.user.Create(e.t.Context(), object)
		}
		if err != nil {
			return err
		}
		return e.user.Update(e.t.Context(), object)
	}))
}

// openShift returns a ClusterVersion of OpenShift with only its name.
func openShift() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(configv1.GroupVersion.WithKind("ClusterVersion"))
	object.SetName("version")
	return object
}

// field returns a field of the spec of OpenShift's object.
func (e *testEnv) field(ctx context.Context, name string) any {
	e.t.Helper()
	object := openShift()
	must(e.t, e.user.Get(ctx, client.ObjectKeyFromObject(object), object))
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, "spec", name)
	must(e.t, err)
	return value
}

// applyAs applies fields to OpenShift's spec as another field manager.
func (e *testEnv) applyAs(owner string, fields map[string]any) {
	e.t.Helper()
	object := openShift()
	object.Object["spec"] = maps.Clone(fields)
	must(e.t, e.user.Apply(e.t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(owner), client.ForceOwnership))
}

// await waits until the condition has the wanted status and reason, and a field of OpenShift's spec
// has the wanted value.
func (e *testEnv) await(what, condition, want, field string, value any) string {
	e.t.Helper()
	var got, message string
	var all []metav1.Condition
	err := wait.PollUntilContextTimeout(e.t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var object maintenancev1beta1.ClusterVersion
		if err := e.user.Get(ctx, client.ObjectKey{Namespace: devcluster.OperatorNamespace, Name: "version"}, &object); err != nil {
			return false, err
		}
		all = object.Status.Conditions
		c := apimeta.FindStatusCondition(all, condition)
		if c == nil || object.Status.ObservedGeneration != object.Generation {
			return false, nil
		}
		got, message = string(c.Status)+" "+c.Reason, c.Message
		return got == want && e.field(ctx, field) == value, nil
	})
	if err != nil {
		e.t.Fatalf("%s: the conditions are %+v, spec.%s is %v: %v", what, all, field, e.field(e.t.Context(), field), err)
	}
	return message
}

// addField adds a string field to the schema of OpenShift's spec, as a later release would.
func (e *testEnv) addField(name string) {
	e.t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.SetName("clusterversions.config.openshift.io")
	patch := fmt.Sprintf(`[{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/%s", "value": {"type": "string"}}]`, name)
	must(e.t, e.user.Patch(e.t.Context(), crd, client.RawPatch("application/json-patch+json", []byte(patch))))
}

// events returns the messages of the Events with this reason.
func (e *testEnv) events(reason string) []string {
	e.t.Helper()
	var list corev1.EventList
	must(e.t, e.user.List(e.t.Context(), &list, client.InNamespace(devcluster.OperatorNamespace)))
	var messages []string
	for i := range list.Items {
		if list.Items[i].Reason == reason {
			messages = append(messages, list.Items[i].Message)
		}
	}
	return messages
}

// The controller syncs a real API server with the permissions of the operator, under its admission
// policies.
func TestSync_with_a_real_API_server(t *testing.T) {
	t.Parallel()
	e := start(t)
	id := e.field(t.Context(), "clusterID")
	template := map[string]any{"channel": "fast-4.20", "clusterID": id, "desiredUpdate": map[string]any{"version": "9.9.9"}}
	e.set(template)
	e.await("the template", "Synced", "True Synced", "channel", "fast-4.20")
	if requested := e.field(t.Context(), "desiredUpdate"); requested != nil {
		t.Errorf("desiredUpdate is %v", requested)
	}

	e.set(map[string]any{"channel": "fast-4.20", "clusterID": "3c5f2c8e-7b61-4c66-8dc0-4f1d6b2f9c11"})
	e.await("another clusterID", "Accepted", "False WrongClusterID", "clusterID", id)

	template["future"] = "x"
	e.set(template)
	message := e.await("an unknown field", "Accepted", "False InvalidTemplate", "channel", "fast-4.20")
	if !strings.Contains(message, "future") {
		t.Errorf("the message is %q", message)
	}
	e.addField("future")
	e.addField("another")
	e.clock.advance(10 * time.Second) // when the parameters are applied again
	e.awaitServed("another")
	e.applyAs("someone-else", map[string]any{"another": "y", "desiredUpdate": map[string]any{"version": "4.20.5"}})
	e.await("a field of a later release", "Synced", "True Synced", "future", "x")
	template["channel"] = "stable-4.20"
	e.set(template)
	e.await("a change of the template", "Synced", "True Synced", "channel", "stable-4.20")
	if got, requested := e.field(t.Context(), "another"), e.field(t.Context(), "desiredUpdate"); got != "y" || cmp.Diff(map[string]any{"version": "4.20.5"}, requested) != "" {
		t.Errorf("the fields of another client are %v and %v", got, requested)
	}
	delete(template, "future")
	e.set(template)
	e.await("a field removed from the template", "Synced", "True Synced", "future", nil)
	if drifts := e.events("DriftDetected"); len(drifts) > 0 {
		t.Errorf("Events: %q", drifts)
	}

	for i := range 3 {
		e.applyAs("argocd-controller", map[string]any{"channel": "candidate-4.20"})
		want := "True Synced"
		if i == 2 {
			want = "False Contested"
		}
		message = e.await("a correction", "Synced", want, "channel", "stable-4.20")
		e.clock.advance(time.Minute)
	}
	const drift = `spec.channel was changed to "candidate-4.20" by argocd-controller`
	if drifts := e.events("DriftDetected"); len(drifts) != 3 || !strings.HasPrefix(drifts[0], drift+"; ") || !strings.Contains(message, drift) {
		t.Errorf("Events: %q, message: %q", drifts, message)
	}
	e.clock.advance(10 * time.Minute)
	template["upstream"] = "https://example.com/graph" // triggers a pass
	e.set(template)
	e.await("after the fight", "Synced", "True Synced", "upstream", "https://example.com/graph")

	holder := "upgrade.managed.openshift.io/UpgradeConfig/upgrades/cluster/uid"
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, Name: lock.Name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder},
	}
	must(t, e.user.Create(t.Context(), lease))
	e.applyAs("upgrade", map[string]any{"channel": "eus-4.20"})
	e.await("during another upgrade", "Synced", "False ChannelInUse", "channel", "eus-4.20")
	lease.Spec.HolderIdentity = nil
	must(t, e.user.Update(t.Context(), lease))
	e.await("after the other upgrade", "Synced", "True Synced", "channel", "stable-4.20")
	if drifts := e.events("DriftDetected"); len(drifts) != 3 {
		t.Errorf("Events: %q", drifts)
	}
}

// awaitServed waits until the API server serves a field of OpenShift's spec.
func (e *testEnv) awaitServed(field string) {
	e.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec": {%q: "x"}}`, field))
	err := wait.PollUntilContextTimeout(e.t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return client.WithFieldValidation(e.user, "Strict").Patch(ctx, openShift(), patch, client.DryRunAll) == nil, nil
	})
	must(e.t, err)
}
