// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// apiServerService is the Service of the API server. It has the first address of the service
// network.
var apiServerService = client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}

// problem is the reason why an informer is unusable, as reported by a condition.
type problem struct {
	condition       string
	reason, message string
}

// newProblem returns a problem.
func newProblem(condition, reason, format string, args ...any) *problem {
	return &problem{condition: condition, reason: reason, message: fmt.Sprintf(format, args...)}
}

// resolveAddress returns the clusterIP of an informer's Service, as assigned by the API server. It
// never resolves a name, because a DNS server could return the address of any host.
func resolveAddress(ctx context.Context, cache client.Reader, ref updatev1beta1.InformerService) (string, *problem, error) {
	fail := func(reason, format string, args ...any) (string, *problem, error) {
		return "", newProblem(updatev1beta1.ConditionReachable, reason, format, args...), nil
	}
	var service corev1.Service
	err := cache.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &service)
	switch {
	case apierrors.IsNotFound(err):
		return fail(updatev1beta1.ReasonServiceNotFound,
			"Service %s/%s does not exist: create it, or correct spec.clientConfig.service", ref.Namespace, ref.Name)
	case err != nil:
		return "", nil, fmt.Errorf("getting Service %s/%s: %w", ref.Namespace, ref.Name, err)
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return fail(updatev1beta1.ReasonServiceNotClusterIP,
			"Service %s/%s has type ExternalName: an informer needs a Service with a clusterIP", ref.Namespace, ref.Name)
	case service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone:
		return fail(updatev1beta1.ReasonServiceNotClusterIP,
			"Service %s/%s has no clusterIP: create it without clusterIP: None", ref.Namespace, ref.Name)
	}
	port := informerPort(ref)
	if ports := tcpPorts(&service); !slices.Contains(ports, port) {
		return fail(updatev1beta1.ReasonServiceNotFound, "Service %s/%s has no TCP port %d: set spec.clientConfig.service.port to a port of the Service (%s)",
			ref.Namespace, ref.Name, port, formatPorts(ports))
	}
	address, err := netip.ParseAddr(service.Spec.ClusterIP)
	if err != nil || !isDialable(address.Unmap(), serviceNetwork(ctx, cache)) {
		return fail(updatev1beta1.ReasonServiceNotClusterIP, "the clusterIP %s of Service %s/%s is not an address of the service network",
			service.Spec.ClusterIP, ref.Namespace, ref.Name)
	}
	return net.JoinHostPort(address.Unmap().String(), strconv.Itoa(int(port))), nil, nil
}

// informerPort returns the port of the Service of an informer.
func informerPort(ref updatev1beta1.InformerService) int32 {
	if ref.Port == 0 {
		return 443
	}
	return ref.Port
}

// serverName returns the name that the certificate of an informer must have.
func serverName(ref updatev1beta1.InformerService) string {
	return ref.Name + "." + ref.Namespace + ".svc"
}

func tcpPorts(service *corev1.Service) []int32 {
	var ports []int32
	for _, port := range service.Spec.Ports {
		if port.Protocol == "" || port.Protocol == corev1.ProtocolTCP {
			ports = append(ports, port.Port)
		}
	}
	return ports
}

// formatPorts returns up to five ports for a message.
func formatPorts(ports []int32) string {
	const most = 5
	var names []string
	for _, port := range ports[:min(len(ports), most)] {
		names = append(names, strconv.Itoa(int(port)))
	}
	if len(ports) > most {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// serviceNetwork returns an address of the service network; the zero Addr if it is unknown.
func serviceNetwork(ctx context.Context, cache client.Reader) netip.Addr {
	var service corev1.Service
	if err := cache.Get(ctx, apiServerService, &service); err != nil {
		return netip.Addr{}
	}
	address, err := netip.ParseAddr(service.Spec.ClusterIP)
	if err != nil {
		return netip.Addr{}
	}
	return address.Unmap()
}

// isDialable reports whether an address can belong to a Service. The API server only assigns
// addresses in the service network; this check also protects the metadata service of a cloud and
// ports of the node. In development clusters, the service network is within loopback.
func isDialable(address, network netip.Addr) bool {
	switch {
	case address.IsUnspecified(), address.IsMulticast(), address.IsLinkLocalUnicast(), address.Zone() != "":
		return false
	case address.IsLoopback():
		return network.IsLoopback()
	default:
		return true
	}
}
