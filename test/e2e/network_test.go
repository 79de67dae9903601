// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
)

// workload stands for the pods that NetworkPolicies match: pods with labels, in a namespace.
type workload struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

// connection is a connection to ports of pods that a NetworkPolicy allows or denies. Without a namespace,
// it leaves the cluster.
type connection struct {
	namespace string
	labels    map[string]string
	protocol  corev1.Protocol
	port      int
}

func (c connection) String() string {
	return fmt.Sprintf("%s port %d of pods with %v in namespace %s", c.protocol, c.port, c.labels, c.namespace)
}

// throughService returns the connection to the pods behind a port of a Service.
func throughService(t *testing.T, objects []*unstructured.Unstructured, namespace, name string, port int, protocol corev1.Protocol) connection {
	t.Helper()
	services := pick[corev1.Service](t, objects, "Service")
	s := slices.IndexFunc(services, func(s corev1.Service) bool { return s.Namespace == namespace && s.Name == name })
	if s < 0 {
		t.Fatalf("no Service %s/%s", namespace, name)
	}
	p := slices.IndexFunc(services[s].Spec.Ports, func(p corev1.ServicePort) bool {
		return int(p.Port) == port && (p.Protocol == protocol || p.Protocol == "" && protocol == corev1.ProtocolTCP)
	})
	if p < 0 {
		t.Fatalf("Service %s/%s has no %s port %d", namespace, name, protocol, port)
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		for _, w := range pick[workload](t, objects, kind) {
			if w.Metadata.Namespace != namespace || !labels.SelectorFromSet(services[s].Spec.Selector).Matches(labels.Set(w.Spec.Template.Labels)) {
				continue
			}
			for _, container := range w.Spec.Template.Spec.Containers {
				for _, containerPort := range container.Ports {
					if containerPort.Name == services[s].Spec.Ports[p].TargetPort.StrVal {
						return connection{namespace, w.Spec.Template.Labels, protocol, int(containerPort.ContainerPort)}
					}
				}
			}
		}
	}
	t.Fatalf("Service %s/%s selects no pod with a port %s", namespace, name, services[s].Spec.Ports[p].TargetPort.String())
	return connection{}
}

// throughURL returns the connection to the pods behind a URL of the cluster.
func throughURL(t *testing.T, objects []*unstructured.Unstructured, address string) connection {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	host := strings.Split(at.Hostname(), ".")
	if len(host) < 3 || host[2] != "svc" {
		t.Fatalf("%s is not an address of a Service", address)
	}
	port := intstr.Parse(at.Port())
	return throughService(t, objects, host[1], host[0], port.IntValue(), corev1.ProtocolTCP)
}

// allowed reports whether rules of one direction allow a connection.
func allowed(t *testing.T, rules []rule, c connection) bool {
	t.Helper()
	return slices.ContainsFunc(rules, func(r rule) bool {
		ports := slices.ContainsFunc(r.ports, func(p networkingv1.NetworkPolicyPort) bool {
			protocol := corev1.ProtocolTCP
			if p.Protocol != nil {
				protocol = *p.Protocol
			}
			return protocol == c.protocol && p.Port.IntValue() == c.port
		})
		peers := slices.ContainsFunc(r.peers, func(p networkingv1.NetworkPolicyPeer) bool {
			if p.NamespaceSelector == nil || p.IPBlock != nil {
				t.Fatal("a peer without a selector of namespaces: this test does not know it")
			}
			// A peer without a selector of pods has all of the namespaces. No peer here is outside the cluster.
			return c.namespace != "" && matches(t, p.NamespaceSelector, map[string]string{corev1.LabelMetadataName: c.namespace}) &&
				(p.PodSelector == nil || matches(t, p.PodSelector, c.labels))
		})
		return (ports || len(r.ports) == 0) && (peers || len(r.peers) == 0)
	})
}

func matches(t *testing.T, selector *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(labels.Set(set))
}

// rule is an ingress or egress rule of a NetworkPolicy.
type rule struct {
	ports []networkingv1.NetworkPolicyPort
	peers []networkingv1.NetworkPolicyPeer
}

func networkPolicy(t *testing.T, objects []*unstructured.Unstructured) (ingress, egress []rule) {
	t.Helper()
	policies := pick[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")
	if len(policies) != 1 || len(policies[0].Spec.PolicyTypes) != 2 {
		t.Fatalf("got %d NetworkPolicies, want one for ingress and egress", len(policies))
	}
	for _, r := range policies[0].Spec.Ingress {
		ingress = append(ingress, rule{r.Ports, r.From})
	}
	for _, r := range policies[0].Spec.Egress {
		egress = append(egress, rule{r.Ports, r.To})
	}
	return ingress, egress
}

// networkCase is a connection that the rules of one direction must allow or deny.
type networkCase struct {
	rules []rule
	connection
	want bool
}

func (c connection) at(port int) connection {
	c.port = port
	return c
}

// monitoringPod returns a connection between the pods of a StatefulSet of the monitoring and a port.
func monitoringPod(t *testing.T, openshift []*unstructured.Unstructured, name string, port int) connection {
	t.Helper()
	for _, w := range pick[workload](t, openshift, "StatefulSet") {
		if w.Metadata.Namespace == "openshift-monitoring" && w.Metadata.Name == name {
			return connection{w.Metadata.Namespace, w.Spec.Template.Labels, corev1.ProtocolTCP, port}
		}
	}
	t.Fatalf("no StatefulSet openshift-monitoring/%s", name)
	return connection{}
}

// anywhere is a connection to unknown pods.
func anywhere() connection {
	return connection{"customer", map[string]string{"app": "shop"}, corev1.ProtocolTCP, 0}
}

// sharedCases are the connections of each program: it is scraped, resolves names, and reaches the API
// server and the Thanos querier.
func sharedCases(t *testing.T, openshift []*unstructured.Unstructured, ingress, egress []rule, metrics int, alerts string) map[string]networkCase {
	t.Helper()
	prometheus := monitoringPod(t, openshift, "prometheus-k8s", metrics)
	return map[string]networkCase{
		"to Prometheus":                           {egress, throughURL(t, openshift, alerts), true},
		"to the DNS by UDP":                       {egress, throughService(t, openshift, "openshift-dns", "dns-default", 53, corev1.ProtocolUDP), true},
		"to the DNS by TCP":                       {egress, throughService(t, openshift, "openshift-dns", "dns-default", 53, corev1.ProtocolTCP), true},
		"to the API server":                       {egress, connection{protocol: corev1.ProtocolTCP, port: 6443}, true},
		"from Prometheus":                         {ingress, prometheus, true},
		"to Prometheus' port of other pods":       {egress, anywhere().at(9091), false},
		"to other pods of the monitoring":         {egress, prometheus.at(9091), false},
		"to other servers of names":               {egress, anywhere().at(53), false},
		"from other pods":                         {ingress, anywhere().at(metrics), false},
		"from other pods of the monitoring":       {ingress, monitoringPod(t, openshift, "alertmanager-main", metrics), false},
		"from Prometheus to the port of probes":   {ingress, prometheus.at(8081), false},
		"from a namespace that imitates the pods": {ingress, connection{"customer", prometheus.labels, corev1.ProtocolTCP, metrics}, false},
	}
}

func checkConnections(t *testing.T, cases map[string]networkCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := allowed(t, tc.rules, tc.connection); got != tc.want {
				t.Errorf("%s: allowed is %t, want %t", tc.connection, got, tc.want)
			}
		})
	}
}

func TestNetworkPolicy(t *testing.T) {
	t.Parallel()
	ingress, egress := networkPolicy(t, kustomized(t))
	openshift, defaults := read(t, "testdata/network"), config.Default()
	own := throughService(t, kustomized(t), home, home+"-metrics", 8443, corev1.ProtocolTCP)
	alertmanager := throughURL(t, openshift, defaults.Alertmanager.URL)
	cases := sharedCases(t, openshift, ingress, egress, own.port, defaults.Alerts.URL)
	maps.Copy(cases, map[string]networkCase{
		"to Alertmanager":                      {egress, alertmanager, true},
		"to a webhook in the cluster":          {egress, throughService(t, openshift, "notifications", "receiver", 443, corev1.ProtocolTCP), true},
		"to a webhook outside the cluster":     {egress, connection{protocol: corev1.ProtocolTCP, port: 443}, true},
		"to other ports of Alertmanager":       {egress, alertmanager.at(9094), false},
		"to Alertmanager's port of other pods": {egress, anywhere().at(9095), false},
		"to other pods":                        {egress, anywhere().at(8443), false},
	})
	checkConnections(t, cases)
}
