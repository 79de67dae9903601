// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm"
	simulatedolm "github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/olm"
)

var startTime = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

// world is a cluster with a simulated OLM that acts before each read by the program.
type world struct {
	*clocktesting.FakeClock
	tb      testing.TB
	client  client.WithWatch
	onTick  func(elapsed time.Duration)
	onPatch func(name string) error // returns the response to an approval; nil for success
	olm     simulatedolm.Simulator

	approvals []string
	readError func() error // error of listing Subscriptions; nil for none
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{FakeClock: clocktesting.NewFakeClock(startTime), tb: t}
	var withStatus []client.Object
	for _, kind := range []schema.GroupVersionKind{simulatedolm.Subscriptions, simulatedolm.InstallPlans, simulatedolm.CSVs, simulatedolm.Catalogs} {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		withStatus = append(withStatus, object)
	}
	objects = append(objects, catalog(), platform(configv1.CompletedUpdate, startTime.Add(-time.Hour)))
	w.client = fake.NewClientBuilder().WithScheme(olm.NewScheme()).WithRESTMapper(olm.Mapper()).
		WithStatusSubresource(append(withStatus, &configv1.ClusterVersion{})...).WithObjects(objects...).Build()
	w.olm = simulatedolm.Simulator{Client: w.client, Clock: w}
	w.settle()
	return w
}

// catalog returns the catalog used by all Subscriptions.
func catalog() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"sourceType": "grpc"}}}
	object.SetGroupVersionKind(simulatedolm.Catalogs)
	object.SetNamespace("openshift-marketplace")
	object.SetName("redhat-operators")
	return object
}

// platform returns a ClusterVersion whose newest update ended at the given time.
func platform(state configv1.UpdateState, end time.Time) *configv1.ClusterVersion {
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	version.Status.History = []configv1.UpdateHistory{{Version: "4.20.5", State: state, CompletionTime: &metav1.Time{Time: end}}}
	return version
}

func subscription(approval, namespace, name, releases string, annotations ...string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"name": name, "source": "redhat-operators", "sourceNamespace": "openshift-marketplace", "installPlanApproval": approval,
	}}}
	object.SetGroupVersionKind(simulatedolm.Subscriptions)
	object.SetNamespace(namespace)
	object.SetName(name)
	all := map[string]string{simulatedolm.AnnotationReleases: releases}
	for i := 0; i < len(annotations); i += 2 {
		all[annotations[i]] = annotations[i+1]
	}
	object.SetAnnotations(all)
	return object
}

func manual(namespace, name, releases string, annotations ...string) client.Object {
	return subscription("Manual", namespace, name, releases, annotations...)
}

// automatic returns a Subscription in namespace a with automatic approval.
func automatic(name, releases string, annotations ...string) client.Object {
	return subscription("Automatic", "a", name, releases, annotations...)
}

// names parses names of Subscriptions in the form namespace/name.
func names(all ...string) []types.NamespacedName {
	var list []types.NamespacedName
	for _, one := range all {
		namespace, name, _ := strings.Cut(one, "/")
		list = append(list, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return list
}
