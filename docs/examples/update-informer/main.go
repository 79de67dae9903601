// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The example informer reports the notes of a team. Each key in the ConfigMap update-notes is a
// risk that an administrator must accept before an update, and a warning during an update.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk"
)

// namespace contains the informer and the ConfigMap.
const namespace = "update-notes"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "update-notes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	access, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")) // in a pod: its ServiceAccount
	if err != nil {
		return err
	}
	client, err := corev1.NewForConfig(access)
	if err != nil {
		return err
	}
	notes := notes{client.ConfigMaps(namespace)}
	return informersdk.Run(ctx, informersdk.Config{
		Namespace: namespace, Service: "update-notes", Kubernetes: access,
		Address: os.Getenv("ADDRESS"), CertDir: os.Getenv("CERT_DIR"),
		UpdateInsights: notes.find, PlanInsights: notes.find,
	})
}

type notes struct{ configMaps corev1.ConfigMapInterface }

// find returns an insight for each note. Its uid is the key, which does not change when the text is
// edited.
func (n notes) find(ctx context.Context, _ hooksv1alpha.RequestSpec) ([]hooksv1alpha.Insight, error) {
	configMap, err := n.configMaps.Get(ctx, "update-notes", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // there are no notes; any other error is a Failure, which resolves nothing
	} else if err != nil {
		return nil, err
	}
	var insights []hooksv1alpha.Insight
	for _, key := range slices.Sorted(maps.Keys(configMap.Data)) {
		insights = append(insights, hooksv1alpha.Insight{
			UID: "note/" + key,
			Scope: updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane, Resources: []updatev1beta1.ResourceReference{
				{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "update-notes"},
			}},
			Impact: updatev1beta1.InsightImpact{
				Level: updatev1beta1.LevelWarning, Reason: "Note", Summary: "Note of the team: " + key, Description: configMap.Data[key],
			},
		})
	}
	return insights, nil
}
