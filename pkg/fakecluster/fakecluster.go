// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakecluster gives a unit test a cluster of its own, in memory: the
// kinds that the operator reads and writes, and the objects that the test names.
//
// It validates nothing and no controller runs in it. Tests that depend on either
// start a real API server with package devcluster.
package fakecluster

import (
	"context"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
)

// New is a cluster with copies of the objects, so that several tests may share them.
func New(tb testing.TB, objects ...client.Object) client.WithWatch {
	tb.Helper()
	scheme := runtime.NewScheme() // of this cluster alone: the client adds the kinds that it meets for the first time
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, configv1.Install, mcfgv1.Install, machinev1beta1.Install, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			tb.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(
		&configv1.ClusterVersion{}, &configv1.ClusterOperator{}, &mcfgv1.MachineConfigPool{},
		&machinev1beta1.MachineSet{}, &machinev1beta1.Machine{}, &v1alpha1.UpgradeConfig{},
	)
	for _, object := range objects {
		builder.WithObjects(object.DeepCopyObject().(client.Object))
	}
	return builder.Build()
}

// WithReadErrors is the cluster, but the objects and lists that are picked cannot be read.
func WithReadErrors(cluster client.WithWatch, err error, matches func(objectOrList any) bool) client.WithWatch {
	return interceptor.NewClient(cluster, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if matches(object) {
				return err
			}
			return c.Get(ctx, key, object, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if matches(list) {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	})
}
