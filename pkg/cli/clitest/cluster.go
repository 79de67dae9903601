// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/scheme"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// FakeCluster is a cluster that counts reads and can deny them.
type FakeCluster struct {
	*session.Cluster

	Requests []string
	// Err returns the error for reading a kind, or nil.
	Err func(kind string) error
}

// NewFakeCluster returns a cluster at 4.20.6 with one node and one pool per role. It copies the given objects
// because the fake client modifies its objects and parallel tests share theirs.
func NewFakeCluster(tb testing.TB, objects ...client.Object) *FakeCluster {
	tb.Helper()
	f := &FakeCluster{Err: func(string) error { return nil }}
	base := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(HealthyObjects()...)
	for _, object := range objects {
		base.WithObjects(object.DeepCopyObject().(client.Object))
	}
	f.Cluster = &session.Cluster{Clock: session.FixedClock(Now)}
	f.Client = base.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			gvk, err := c.GroupVersionKindFor(object)
			if err != nil {
				return err
			}
			f.Requests = append(f.Requests, "get "+gvk.Kind)
			if err := f.Err(gvk.Kind); err != nil {
				return err
			}
			return c.Get(ctx, key, object, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			gvk, err := c.GroupVersionKindFor(list)
			if err != nil {
				return err
			}
			kind := strings.TrimSuffix(gvk.Kind, "List")
			f.Requests = append(f.Requests, "list "+kind)
			if err := f.Err(kind); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	f.Reader = f.Client
	return f
}

// HealthyObjects returns the objects of a cluster without an update in progress.
func HealthyObjects() []client.Object {
	installed := At("2026-11-14 03:12")
	objects := []client.Object{
		&configv1.ClusterVersion{
			ObjectMeta: metav1.ObjectMeta{Name: "version"},
			Status: configv1.ClusterVersionStatus{
				Desired: configv1.Release{Version: "4.20.6", Image: "image-4.20.6"},
				History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.20.6", Image: "image-4.20.6", StartedTime: installed, CompletionTime: &installed}},
				Conditions: []configv1.ClusterOperatorStatusCondition{
					{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: installed},
					{Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse, LastTransitionTime: installed},
					{Type: "Failing", Status: configv1.ConditionFalse, LastTransitionTime: installed},
				},
			},
		},
	}
	for _, name := range []string{"network", "machine-config"} {
		objects = append(objects, &configv1.ClusterOperator{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: configv1.ClusterOperatorStatus{
				Versions: []configv1.OperandVersion{{Name: "operator", Version: "4.20.6"}, {Name: "operator-image", Version: "image-4.20.6"}},
				Conditions: []configv1.ClusterOperatorStatusCondition{
					{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue},
					{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse},
					{Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse},
				},
			},
		})
	}
	for _, role := range []string{"master", "worker"} {
		objects = append(objects, HealthyNode(role+"-0", role), HealthyPool(role), RenderedConfig(role))
	}
	return objects
}

// HealthyNode returns a ready node of a role with its pool's configuration.
func HealthyNode(name, role string) *corev1.Node {
	rendered := "rendered-" + role + "-1"
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"node-role.kubernetes.io/" + role: ""},
			Annotations: map[string]string{
				"machineconfiguration.openshift.io/currentConfig": rendered, "machineconfiguration.openshift.io/desiredConfig": rendered,
				"machineconfiguration.openshift.io/state": "Done",
			},
		},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// HealthyPool returns a pool with one updated node.
func HealthyPool(name string) *mcfgv1.MachineConfigPool {
	configuration := mcfgv1.MachineConfigPoolStatusConfiguration{ObjectReference: corev1.ObjectReference{Name: "rendered-" + name + "-1"}}
	return &mcfgv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: mcfgv1.MachineConfigPoolSpec{
			NodeSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + name: ""}},
			Configuration: configuration,
		},
		Status: mcfgv1.MachineConfigPoolStatus{
			Configuration: configuration, MachineCount: 1, UpdatedMachineCount: 1, ReadyMachineCount: 1,
			Conditions: []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}},
		},
	}
}

// RenderedConfig returns the configuration of a HealthyPool.
func RenderedConfig(role string) *mcfgv1.MachineConfig {
	return &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{
		Name: "rendered-" + role + "-1",
		Annotations: map[string]string{
			"machineconfiguration.openshift.io/release-image-version":           "4.20.6",
			"machineconfiguration.openshift.io/generated-by-controller-version": "x",
		},
	}}
}

// Lease returns the Lease of the Update Status Controller, renewed the given time ago.
func Lease(age time.Duration) client.Object {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: session.ControllerNamespace, Name: session.ControllerLease},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: Now.Add(-age)}},
	}
}

// NotFound returns the error for an object that does not exist.
func NotFound() error { return apierrors.NewNotFound(schema.GroupResource{}, "x") }

// Forbidden returns the error for a read without permission.
func Forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no"))
}

// Unavailable returns the error of an overloaded API server.
func Unavailable() error { return apierrors.NewServiceUnavailable("overloaded") }

// ErrorOf returns a function that fails reads of one kind.
func ErrorOf(kind string, err error) func(string) error {
	return func(of string) error {
		if of == kind {
			return err
		}
		return nil
	}
}

// NoMatch returns the error for a kind that the API server does not serve.
func NoMatch(kind string) error {
	return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: updatev1beta1.GroupVersion.Group, Kind: kind}}
}
