// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realcvo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// addDeployment makes the process follow its Deployment. Every release applies the Deployment.
func (o *Operator) addDeployment(mgr manager.Manager) error {
	key := client.ObjectKey{Namespace: Namespace, Name: program}
	err := ctrl.NewControllerManagedBy(mgr).
		Named(program).
		For(&appsv1.Deployment{}).
		WithOptions(controller.Options{SkipNameValidation: new(true)}).
		Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			var deployment appsv1.Deployment
			if err := mgr.GetClient().Get(ctx, request.NamespacedName, &deployment); request.NamespacedName != key || err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			return reconcile.Result{}, o.deploy(deployment.Spec.Template.Spec.Containers[0])
		}))
	if err != nil {
		return fmt.Errorf("playing the Deployment of the cluster version operator: %w", err)
	}
	return nil
}

// deploy replaces the process if the container has changed.
func (o *Operator) deploy(container corev1.Container) error {
	if o.process.runs(container) {
		return nil
	}
	release, err := o.pull(container.Image)
	if err != nil {
		return err
	}
	if err := o.process.stop(); err != nil {
		return err
	}
	for _, folder := range []string{operatorManifests, releaseManifests} {
		if err := os.RemoveAll(filepath.Join(o.options.Dir, folder)); err != nil {
			return fmt.Errorf("removing the former release: %w", err)
		}
	}
	if err := o.unpack(release, "/"); err != nil {
		return err
	}
	return o.process.run(container)
}

func (o *Operator) pull(image string) (updategraph.Release, error) {
	release, found := o.options.Catalog.Image(image)
	if !found {
		return release, fmt.Errorf("pulling image %s: manifest unknown", image)
	}
	return release, nil
}

// Run simulates the pods that copy a release out of its image: it writes the files that they would
// have copied.
func (o *Operator) Run(_ context.Context, pod *corev1.Pod) error {
	if pod.Namespace != Namespace || pod.Labels["k8s-app"] != "retrieve-openshift-release" {
		return nil
	}
	container := pod.Spec.Containers[0]
	release, err := o.pull(container.Image)
	if err != nil {
		return err
	}
	if release.Refused != "" {
		return fmt.Errorf("pulling image %s: %s", container.Image, release.Refused)
	}
	if len(container.Command) != 3 || container.Command[0] != "mv" || !strings.HasPrefix(container.Command[2], payloadsPath+"/") {
		return fmt.Errorf("no simulator for command %v", container.Command)
	}
	return o.unpack(release, filepath.Clean(container.Command[2]))
}
