// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
)

// Limits of --webhook-timeout.
const (
	minWebhookTimeout = time.Second
	maxWebhookTimeout = 30 * time.Second
)

// configureWebhook sets the receiver of the webhook.
func (h *hub) configureWebhook(o httpclient.Options) error {
	if o.URL != "" && (o.Timeout < minWebhookTimeout || o.Timeout > maxWebhookTimeout) {
		return fmt.Errorf("--webhook-timeout: must be %s to %s", minWebhookTimeout, maxWebhookTimeout)
	}
	o.Proxy = h.proxy.ForRequest
	if err := h.webhook.SetReceiver(&o); err != nil {
		return fmt.Errorf("--webhook-url: the URL of the receiver %w", err)
	}
	return nil
}

func (h *hub) bind(clients manager.Clients) error {
	h.live, h.proxy.Live = clients.Live, clients.Live
	return nil
}

// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get

// eventSource returns the source of CloudEvents: the UID of kube-system on the hub, which need not
// be an OpenShift cluster. It is not safe for concurrent use: only the delivery of events calls it.
func (h *hub) eventSource(ctx context.Context) (string, error) {
	if h.source == "" {
		var namespace corev1.Namespace
		if err := h.live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &namespace); err != nil {
			return "", fmt.Errorf("reading the namespace %s, whose UID identifies the hub: %w", metav1.NamespaceSystem, err)
		}
		if namespace.UID == "" {
			return "", errors.New("the namespace " + metav1.NamespaceSystem + " has no UID")
		}
		h.source = "urn:uuid:" + string(namespace.UID)
	}
	return h.source, nil
}

// eventCluster returns the name of the ManagedCluster that an event is about (the namespace of its
// run). It is empty for events about a ManagedClustersUpgrade.
func eventCluster(_ context.Context, about webhook.Object) string {
	if about.Kind != "ClusterUpgradeRun" {
		return ""
	}
	return about.Namespace
}
