// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ocm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writers is the number of clusters that are registered concurrently.
const writers = 8

// install creates the cluster set and its binding, and registers the clusters.
func (f *Fleet) install(ctx context.Context) error {
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: ClusterSet}}
	set.Spec.ClusterSelector.SelectorType = clusterv1beta2.ExclusiveClusterSetLabel
	for _, object := range []client.Object{
		namespace(Namespace), namespace(componentsNamespace), set,
		&clusterv1beta2.ManagedClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: ClusterSet},
			Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: ClusterSet},
		},
	} {
		if err := f.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return f.registerAll(ctx)
}

// registerAll registers the clusters concurrently.
func (f *Fleet) registerAll(ctx context.Context) error {
	numbers := make(chan int, f.spec.Clusters)
	for number := 1; number <= f.spec.Clusters; number++ {
		numbers <- number
	}
	close(numbers)
	errs := make([]error, writers)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			for number := range numbers {
				if errs[i] = f.register(ctx, number); errs[i] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// register creates a managed cluster as an import does. A simulated cluster has already joined. For
// a real one, the registration controller and the agents create the namespace and the status.
func (f *Fleet) register(ctx context.Context, number int) error {
	cluster := f.spec.cluster(number)
	if err := f.Client.Create(ctx, cluster); err != nil {
		return fmt.Errorf("creating ManagedCluster %s: %w", cluster.Name, err)
	}
	if f.spec.Real {
		return nil
	}
	if err := f.Client.Create(ctx, namespace(cluster.Name)); err != nil {
		return fmt.Errorf("creating namespace %s: %w", cluster.Name, err)
	}
	cluster.Status = clusterStatus(time.Now())
	if err := f.Client.Status().Update(ctx, cluster); err != nil {
		return fmt.Errorf("creating the status of ManagedCluster %s: %w", cluster.Name, err)
	}
	return nil
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
