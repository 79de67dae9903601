// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package controlplane_test

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
)

// A process that listens on the cluster IP of a Service can be reached there, and two control
// planes have different networks.
func TestServiceNetwork_can_be_dialed(t *testing.T) {
	t.Parallel()
	first := start(t, controlplane.Options{WithoutControllerManager: true})
	second := start(t, controlplane.Options{WithoutControllerManager: true})
	if first.ServiceNetwork().Overlaps(second.ServiceNetwork()) {
		t.Errorf("the networks are %s and %s", first.ServiceNetwork(), second.ServiceNetwork())
	}
	admin := clients(t, first.RESTConfig())
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "informer", Namespace: "default"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8443}}},
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		created, err := admin.CoreV1().Services("default").Create(ctx, service, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsInternalError(err) { // the namespace and the network are created shortly after the API server is ready
			return false, nil
		}
		service = created
		return err == nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
	address, err := netip.ParseAddr(service.Spec.ClusterIP)
	if err != nil || !address.IsLoopback() || !first.ServiceNetwork().Contains(address) {
		t.Fatalf("the cluster IP is %s, want one of %s: %v", service.Spec.ClusterIP, first.ServiceNetwork(), err)
	}
	at := netip.AddrPortFrom(address, 8443).String()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	if err := connection.Close(); err != nil {
		t.Error(err)
	}
	kubernetes, err := admin.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil || !first.ServiceNetwork().Contains(netip.MustParseAddr(kubernetes.Spec.ClusterIP)) {
		t.Errorf("Service kubernetes, by which the network is known: %v, %v", kubernetes.Spec.ClusterIP, err)
	}
}
