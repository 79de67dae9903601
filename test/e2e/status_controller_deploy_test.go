// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/statuscontroller"
)

// updateStatusInstalls are the folders that install the Update Status Controller.
func updateStatusInstalls() map[string]string {
	return map[string]string{"on OpenShift": deployFolder + "/update-status", "without OpenShift": deployFolder + "/update-status-without-openshift"}
}

// argument returns the value of a flag of a container; empty if it is not set.
func argument(container *corev1.Container, name string) string {
	for _, arg := range container.Args {
		if value, found := strings.CutPrefix(arg, "--"+name+"="); found {
			return value
		}
	}
	return ""
}

// The Deployment runs the program with valid flags, each file is in a mounted volume, and the program listens
// at the ports.
func TestStatusController_deployment(t *testing.T) {
	t.Parallel()
	for name, folder := range updateStatusInstalls() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := kustomizedFrom(t, folder)
			pod := deploymentOf(t, objects).Spec.Template.Spec
			container := &pod.Containers[0]
			if !slices.Equal(container.Command, []string{"/" + statusController}) {
				t.Errorf("command %v", container.Command)
			}
			command := statuscontroller.Command("")
			if err := command.ParseFlags(container.Args); err != nil || len(command.Flags().Args()) > 0 {
				t.Errorf("flags %v: %v", container.Args, err)
			}
			for port, flag := range map[string]string{"metrics": "metrics-bind-address", "probes": "health-probe-bind-address"} {
				if !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool {
					return p.Name == port && fmt.Sprintf(":%d", p.ContainerPort) == argument(container, flag)
				}) {
					t.Errorf("port %s of %v differs from --%s=%s", port, container.Ports, flag, argument(container, flag))
				}
			}
			onOpenShift := folder == deployFolder+"/update-status"
			if got := argument(container, "service-ca-file") != ""; got != onOpenShift {
				t.Errorf("the service CA is read: %t, want %t", got, onOpenShift)
			}
			if got := argument(container, "alerts-url") != ""; got != onOpenShift {
				t.Errorf("alerts are read: %t, want %t", got, onOpenShift)
			}
			if onOpenShift {
				checkServiceCA(t, &pod)
			}
		})
	}
}

// checkServiceCA checks that OpenShift publishes the service CA in the ConfigMap of the mounted file.
func checkServiceCA(t *testing.T, pod *corev1.PodSpec) {
	t.Helper()
	folder, file := path.Split(argument(&pod.Containers[0], "service-ca-file"))
	mounts := pod.Containers[0].VolumeMounts
	m := slices.IndexFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath+"/" == folder })
	if m < 0 || file != "service-ca.crt" {
		t.Fatalf("nothing is mounted at %s, or OpenShift does not write %s", folder, file)
	}
	v := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mounts[m].Name })
	source := pod.Volumes[v].ConfigMap
	if source == nil || source.Optional == nil || !*source.Optional {
		t.Fatalf("volume %s is not an optional ConfigMap", pod.Volumes[v].Name)
	}
	if source.Name != serviceCAConfigMap {
		t.Errorf("OpenShift does not publish its service CA in ConfigMap %s", source.Name)
	}
}

func TestNetworkPolicy_of_update_status(t *testing.T) {
	t.Parallel()
	for name, folder := range updateStatusInstalls() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := kustomizedFrom(t, folder)
			ingress, egress := networkPolicy(t, objects)
			openshift := read(t, "testdata/network")
			own := throughService(t, objects, home, statusController+"-metrics", 8443, corev1.ProtocolTCP)
			alerts := argument(&deploymentOf(t, kustomizedFrom(t, deployFolder+"/update-status")).Spec.Template.Spec.Containers[0], "alerts-url")
			cases := sharedCases(t, openshift, ingress, egress, own.port, alerts)
			maps.Copy(cases, map[string]networkCase{
				"to an informer behind a Service":    {egress, throughService(t, openshift, "notifications", "receiver", 443, corev1.ProtocolTCP), true},
				"to an informer at port 443":         {egress, anywhere().at(443), true},
				"to an informer at port 8443":        {egress, anywhere().at(8443), true},
				"to an informer at port 9443":        {egress, anywhere().at(9443), true},
				"to other ports":                     {egress, anywhere().at(8080), false},
				"to Alertmanager":                    {egress, monitoringPod(t, openshift, "alertmanager-main", 9095), false},
				"to a server outside the cluster":    {egress, connection{protocol: corev1.ProtocolTCP, port: 443}, false},
				"to an outside port 8443":            {egress, connection{protocol: corev1.ProtocolTCP, port: 8443}, false},
				"to the port of informers by UDP":    {egress, connection{"customer", nil, corev1.ProtocolUDP, 443}, false},
				"to other ports of the DNS":          {egress, throughService(t, openshift, "openshift-dns", "dns-default", 53, corev1.ProtocolTCP).at(9154), false},
				"to tenants' port of Thanos querier": {egress, throughService(t, openshift, "openshift-monitoring", "thanos-querier", 9092, corev1.ProtocolTCP), false},
			})
			checkConnections(t, cases)
		})
	}
}

// An API server without OpenShift accepts the manifests and admits the pod, and the program publishes what is
// missing.
func TestStatusController_without_OpenShift(t *testing.T) {
	t.Parallel()
	w := &statusWorld{server: startServer(t), t: t}
	objects := kustomizedFrom(t, updateStatusInstalls()["without OpenShift"])
	w.apply(t, objects)
	deployed := deploymentOf(t, objects)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "admitted", Labels: deployed.Spec.Template.Labels}, Spec: deployed.Spec.Template.Spec}
	mustSucceed(t, w.client.Create(t.Context(), pod))
	scheme := runtime.NewScheme()
	mustSucceed(t, clientgoscheme.AddToScheme(scheme))
	mustSucceed(t, updatev1beta1.AddToScheme(scheme))
	var err error
	w.typed, err = client.New(w.RESTConfig(), client.Options{Scheme: scheme})
	mustSucceed(t, err)
	w.start()
	w.waitFor("the status says that there is no ClusterVersion", func(s updatev1beta1.UpdateStatusStatus) bool {
		return s.Assessment != nil && s.Assessment.State == updatev1beta1.StateUnknown && slices.ContainsFunc(s.Assessment.Sources, func(source updatev1beta1.Source) bool {
			return !source.Current && strings.Contains(source.Message, "does not serve this kind")
		})
	})
	for _, forbidden := range w.forbidden(t, statusController) {
		t.Errorf("a permission is missing: %s", forbidden)
	}
	if code := w.binary.probe(t.Context(), "/healthz"); code != http.StatusOK {
		t.Errorf("the program answers %d to /healthz", code)
	}
}
