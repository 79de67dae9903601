// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// podDuration is how long a pod runs without the annotation.
const podDuration = "10s"

// pods is a program that runs pods: each ends after ten seconds or the duration of its annotation, with
// the exit code of its annotation, or never.
func pods() *simulation.Program {
	return &simulation.Program{
		Name: "kubelet", Direct: true,
		Controllers: func(env simulation.Env) ([]manager.Controller, error) {
			run := func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
				var pod corev1.Pod
				if err := env.Client.Get(ctx, request.NamespacedName, &pod); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				duration, err := time.ParseDuration(cmp.Or(pod.Annotations[kubelet.Duration], podDuration))
				if err != nil {
					return reconcile.Result{}, err
				}
				age := env.Clock.Now().Sub(pod.CreationTimestamp.Time)
				switch {
				case pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed, pod.Annotations[kubelet.NeverEnds] == "true":
					return reconcile.Result{}, nil
				case age < duration:
					return reconcile.Result{RequeueAfter: duration - age}, nil
				}
				pod.Status.Phase = corev1.PodSucceeded
				if code := pod.Annotations[kubelet.ExitCode]; code != "" && code != "0" {
					pod.Status.Phase = corev1.PodFailed
				}
				pod.Status.StartTime = &metav1.Time{Time: env.Clock.Now()}
				return reconcile.Result{}, env.Client.Status().Update(ctx, &pod)
			}
			return []manager.Controller{{
				Name: "kubelet", Reads: []manager.Kind{{Object: &corev1.Pod{}, Requests: manager.Self}}, Reconciler: reconcile.Func(run),
			}}, nil
		},
	}
}
