// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/pki"
)

const (
	statusController = "update-status-controller"
	poolDefinition   = "machineconfigpools.machineconfiguration.openshift.io"
)

// unusedByStatusController are the permissions that the test does not use, with the reason. The
// permissions to list watched kinds are used if the API server cannot stream lists.
var unusedByStatusController = map[string]string{
	"list pods": "the pods of nodes that are being drained are read, which takes rendered configurations of two releases",
	"get deployments.apps machine-config-operator": "its image is read while an update changes only the image",
}

// statusWorld is an API server and the Update Status Controller with its deployed permissions.
type statusWorld struct {
	*server
	t      testing.TB
	typed  client.Client
	binary *replica
}

func newStatusWorld(tb testing.TB, without ...string) *statusWorld {
	tb.Helper()
	w := &statusWorld{server: startServer(tb), t: tb}
	w.openshift(tb, without...)
	for _, name := range []string{"openshift-config", "openshift-config-managed"} {
		mustSucceed(tb, w.client.Create(tb.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	w.apply(tb, kustomizedFrom(tb, deployFolder+"/update-status"))
	scheme := runtime.NewScheme()
	mustSucceed(tb, clientgoscheme.AddToScheme(scheme))
	mustSucceed(tb, updatev1beta1.AddToScheme(scheme))
	mustSucceed(tb, configv1.Install(scheme))
	mustSucceed(tb, mcfgv1.Install(scheme))
	var err error
	w.typed, err = client.New(w.RESTConfig(), client.Options{Scheme: scheme})
	mustSucceed(tb, err)
	return w
}

func (w *statusWorld) start() {
	w.t.Helper()
	kubeconfig, _ := w.account(w.t, statusController)
	w.startWith(kubeconfig)
	waitUntil(w.t, "the controller is ready", func(ctx context.Context) bool { return w.binary.probe(ctx, "/readyz") == http.StatusOK })
}

// startWith starts the program with the access of a kubeconfig.
func (w *statusWorld) startWith(kubeconfig string, flags ...string) {
	w.t.Helper()
	bin, err := controlplane.FindBinDir()
	mustSucceed(w.t, err)
	mustSucceed(w.t, controlplane.RequirePrograms(bin, statusController))
	w.binary = startProgram(w.t, filepath.Join(bin, statusController), kubeconfig, flags...)
}

// status returns the published status; it is empty if there is none.
func (w *statusWorld) status(ctx context.Context) updatev1beta1.UpdateStatusStatus {
	var status updatev1beta1.UpdateStatus
	if err := w.typed.Get(ctx, client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, &status); err != nil {
		return updatev1beta1.UpdateStatusStatus{}
	}
	return status.Status
}

// isCurrent reports whether a source of the assessment is current.
func (w *statusWorld) isCurrent(ctx context.Context, name string) bool {
	a := w.status(ctx).Assessment
	return a != nil && slices.ContainsFunc(a.Sources, func(s updatev1beta1.Source) bool { return s.Name == name && s.Current })
}

func (w *statusWorld) waitFor(what string, is func(updatev1beta1.UpdateStatusStatus) bool) {
	w.t.Helper()
	waitUntil(w.t, what, func(ctx context.Context) bool { return is(w.status(ctx)) })
}

// TestStatusController_runs_with_its_deployed_permissions runs the program as it is deployed: kinds of
// OpenShift come without a restart, the documented example of an informer is queried during an update, and
// each permission is needed.
func TestStatusController_runs_with_its_deployed_permissions(t *testing.T) {
	t.Parallel()
	w := newStatusWorld(t, poolDefinition)
	w.start()
	w.waitFor("the UpdateStatus is filled", func(s updatev1beta1.UpdateStatusStatus) bool {
		return s.Assessment != nil && s.Assessment.State == updatev1beta1.StateUnknown
	})

	t.Log("an optional kind comes without a restart")
	w.createOperator()
	waitUntil(t, "the pools are missing", func(ctx context.Context) bool { return !w.isCurrent(ctx, "pools") })
	w.apply(t, []*unstructured.Unstructured{definitionOf(t, poolDefinition)})
	w.createPool()
	waitUntil(t, "the pools are read", func(ctx context.Context) bool { return w.isCurrent(ctx, "pools") })

	t.Log("an informer is queried during an update")
	w.createVersion()
	w.serveExample()
	w.waitFor("the insight of the informer is published", func(s updatev1beta1.UpdateStatusStatus) bool {
		return s.ControlPlane != nil && slices.ContainsFunc(s.ControlPlane.UpdateInformers, func(i updatev1beta1.InformerInsights) bool {
			return i.Name == "update-notes" && len(i.Insights) == 1 && i.Insights[0].UID == "note/backup"
		})
	})
	answering := []string{
		updatev1beta1.ConditionCABundleResolved, updatev1beta1.ConditionDiscovered, updatev1beta1.ConditionOnline, updatev1beta1.ConditionReachable, history.ConditionReady,
	}
	waitUntil(t, "the conditions of the informer are published, and its heartbeat", func(ctx context.Context) bool {
		var informer updatev1beta1.UpdateInformer
		err := w.typed.Get(ctx, client.ObjectKey{Name: "update-notes"}, &informer)
		return err == nil && slices.Equal(trueConditions(&informer), answering) && informer.Status.LastContactTime != nil
	})
	w.installOptionalKinds()
	w.waitFor("each source is read, but the alerts, for which none is configured", func(s updatev1beta1.UpdateStatusStatus) bool {
		return s.Assessment != nil && !slices.ContainsFunc(s.Assessment.Sources, func(s updatev1beta1.Source) bool { return !s.Current && s.Name != "alerts" })
	})
	w.analyzePlan()
	w.prunePlan()
	_, token := w.account(t, statusController)
	if status, _ := w.binary.scrape(t, token); status != http.StatusForbidden {
		t.Errorf("a client without permission reads the metrics: %d", status)
	}

	t.Log("the UpdateStatus is created again")
	mustSucceed(t, w.typed.Delete(t.Context(), &updatev1beta1.UpdateStatus{ObjectMeta: metav1.ObjectMeta{Name: updatev1beta1.UpdateStatusName}}))
	w.waitFor("the UpdateStatus is filled again", func(s updatev1beta1.UpdateStatusStatus) bool { return s.ControlPlane != nil })
	w.checkPermissions()
}

// trueConditions returns the types of the conditions of an informer, in order, or nil if one is not true.
func trueConditions(informer *updatev1beta1.UpdateInformer) []string {
	var types []string
	for _, c := range informer.Status.Conditions {
		if c.Status != metav1.ConditionTrue {
			return nil
		}
		types = append(types, c.Type)
	}
	slices.Sort(types)
	return types
}

// analyzePlan creates a plan, and waits until it is analyzed. The acknowledgments are read if there is a gate.
func (w *statusWorld) analyzePlan() {
	w.t.Helper()
	mustSucceed(w.t, w.typed.Create(w.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config-managed", Name: "admin-gates"}, Data: map[string]string{"ack-4.20-apis-in-4.21": "APIs are removed."},
	}))
	plan := planOf("4.20.7")
	mustSucceed(w.t, w.typed.Create(w.t.Context(), plan))
	waitUntil(w.t, "the plan is analyzed", func(ctx context.Context) bool {
		err := w.typed.Get(ctx, client.ObjectKeyFromObject(plan), plan)
		return err == nil && plan.Status.LastAnalysisTime != nil
	})
}

// prunePlan completes the update, creates a plan of its release, and waits until the plan is pruned.
func (w *statusWorld) prunePlan() {
	w.t.Helper()
	var version configv1.ClusterVersion
	mustSucceed(w.t, w.typed.Get(w.t.Context(), client.ObjectKey{Name: "version"}, &version))
	version.Status.History[0].State, version.Status.History[0].CompletionTime = configv1.CompletedUpdate, new(metav1.Now())
	mustSucceed(w.t, w.typed.Status().Update(w.t.Context(), &version))
	plan := planOf(version.Status.History[0].Version)
	mustSucceed(w.t, w.typed.Create(w.t.Context(), plan))
	waitUntil(w.t, "the plan of the installed release is pruned", func(ctx context.Context) bool {
		return apierrors.IsNotFound(w.typed.Get(ctx, client.ObjectKeyFromObject(plan), plan))
	})
}

func planOf(release string) *updatev1beta1.UpdatePlan {
	return &updatev1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: "update-plan-" + release}, Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: release}}
}

// installOptionalKinds installs the remaining optional kinds, and the kinds that a plan reads.
func (w *statusWorld) installOptionalKinds() {
	w.t.Helper()
	w.apply(w.t, kustomizedFrom(w.t, deployFolder+"/crds"))
	for _, k := range optionalPools() {
		w.apply(w.t, []*unstructured.Unstructured{optionalDefinition(k.group, "v1beta1", k.kind, k.plural)})
	}
	etcd := optionalDefinition("operator.openshift.io", "v1", "Etcd", "etcds")
	counts := optionalDefinition("apiserver.openshift.io", "v1", "APIRequestCount", "apirequestcounts")
	builds := optionalDefinition("machineconfiguration.openshift.io", "v1", "MachineOSBuild", "machineosbuilds")
	for _, definition := range []*unstructured.Unstructured{etcd, counts, builds} {
		mustSucceed(w.t, unstructured.SetNestedField(definition.Object, "Cluster", "spec", "scope"))
	}
	versions := optionalDefinition("operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "clusterserviceversions")
	w.apply(w.t, []*unstructured.Unstructured{etcd, counts, builds, versions})
	var unused []string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("permissions that were not used:\n%s", strings.Join(unused, "\n"))
		}
	}()
	waitUntil(w.t, "each permission to watch is used", func(context.Context) bool {
		unused = w.surplus()
		return !slices.ContainsFunc(unused, func(p string) bool { return strings.HasPrefix(p, "watch ") })
	})
}

// checkPermissions compares the requests of the controller with the permissions of its Roles.
func (w *statusWorld) checkPermissions() {
	w.t.Helper()
	for _, forbidden := range w.forbidden(w.t, statusController) {
		w.t.Errorf("a permission is missing: %s", forbidden)
	}
	if surplus := w.surplus(); len(surplus) > 0 {
		w.t.Errorf("permissions that no request needed, or that are needed and listed as unused:\n%s", strings.Join(surplus, "\n"))
	}
}

// surplus returns the permissions that no request has needed until now, or that are listed as unused and
// were needed.
func (w *statusWorld) surplus() []string {
	w.t.Helper()
	requests := parseAuditLogOf(w.t, w.AuditLog(), "system:serviceaccount:"+home+":"+statusController)
	granted := permissionsIn(w.t, "update-status/role.yaml")
	surplus := []string{}
	for p := range granted {
		watched := p
		watched.verb = "watch"
		_, excused := unusedByStatusController[p.String()]
		if p.verb == "list" && granted[watched] {
			continue
		}
		if used := slices.ContainsFunc(requests, p.permits); used == excused {
			surplus = append(surplus, p.String())
		}
	}
	slices.Sort(surplus)
	return surplus
}

// definitionOf returns a CustomResourceDefinition of OpenShift.
func definitionOf(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	objects, err := manifests.Read(crds.Files)
	mustSucceed(t, err)
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetName() == name })
	return objects[i]
}

// createOperator creates the ClusterOperator of the machine config operator: a cluster without it has no
// pools.
func (w *statusWorld) createOperator() {
	w.t.Helper()
	operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "machine-config"}}
	mustSucceed(w.t, w.typed.Create(w.t.Context(), operator))
}

// createPool creates a machine config pool as soon as its kind is served. If a cluster has the machine
// config operator but no pools, data is missing.
func (w *statusWorld) createPool() {
	w.t.Helper()
	waitUntil(w.t, "a machine config pool is created", func(ctx context.Context) bool {
		return w.typed.Create(ctx, &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}) == nil
	})
}

// createVersion creates a ClusterVersion whose update is in progress.
func (w *statusWorld) createVersion() {
	w.t.Helper()
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: "11111111-1111-4111-8111-111111111111"}}
	mustSucceed(w.t, w.typed.Create(w.t.Context(), version))
	now := metav1.Now()
	version.Status = configv1.ClusterVersionStatus{
		Desired: configv1.Release{Version: "4.20.6", Image: "image-6"}, VersionHash: "hash", ObservedGeneration: version.Generation,
		AvailableUpdates: []configv1.Release{},
		History: []configv1.UpdateHistory{
			{State: configv1.PartialUpdate, StartedTime: now, Version: "4.20.6", Image: "image-6"},
			{State: configv1.CompletedUpdate, StartedTime: now, CompletionTime: &now, Version: "4.20.5", Image: "image-5"},
		},
	}
	mustSucceed(w.t, w.typed.Status().Update(w.t.Context(), version))
}

// serveExample runs the documented example of an informer with the rights of its manifests, at the
// cluster IP of its Service.
func (w *statusWorld) serveExample() {
	w.t.Helper()
	const folder, name = repository + "/docs/examples/update-informer", "update-notes" // of its namespace, its Service, and all else
	program := filepath.Join(w.t.TempDir(), name)
	build := exec.CommandContext(w.t.Context(), "go", "build", "-o", program, ".")
	build.Dir = folder
	if out, err := build.CombinedOutput(); err != nil {
		w.t.Fatalf("building the example: %v\n%s", err, out)
	}
	objects, err := manifests.Read(os.DirFS(folder))
	mustSucceed(w.t, err)
	authority := pki.New("service-ca")
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "UpdateInformer" })
	bundle := base64.StdEncoding.EncodeToString(authority.PEM) // in place of the service CA of OpenShift
	mustSucceed(w.t, unstructured.SetNestedField(objects[i].Object, bundle, "spec", "clientConfig", "caBundle"))
	w.apply(w.t, objects)
	mustSucceed(w.t, w.typed.Create(w.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}, Data: map[string]string{"backup": "The backup takes two hours."},
	}))
	var service corev1.Service
	mustSucceed(w.t, w.typed.Get(w.t.Context(), client.ObjectKey{Namespace: name, Name: name}, &service))
	certificates := w.t.TempDir()
	kubeconfig := filepath.Join(certificates, "kubeconfig")
	mustSucceed(w.t, w.ServiceAccountKubeconfig(w.t.Context(), kubeconfig, name, name))
	certificate := authority.Issue(name+"."+name+".svc", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	mustSucceed(w.t, pki.Write(certificate, filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "tls.key")))
	example, err := childprocess.Start(childprocess.Command{
		Path: program, Log: filepath.Join(certificates, "log"),
		Env: append(os.Environ(), "KUBECONFIG="+kubeconfig, "CERT_DIR="+certificates, "ADDRESS="+net.JoinHostPort(service.Spec.ClusterIP, "8443")),
	})
	mustSucceed(w.t, err)
	w.t.Cleanup(func() {
		_ = example.Stop(time.Minute)
		if printed, _ := os.ReadFile(filepath.Join(certificates, "log")); len(printed) > 0 {
			w.t.Logf("the example printed:\n%s", printed)
		}
	})
}

// A CustomResourceDefinition of another program would drop what the controller writes.
func TestStatusController_refuses_definitions_of_others(t *testing.T) {
	t.Parallel()
	w := newStatusWorld(t)
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	patch, err := json.Marshal([]map[string]any{{
		"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/assessment",
	}})
	mustSucceed(t, err)
	definition.SetName("updatestatuses.config.openshift.io")
	mustSucceed(t, w.client.Patch(t.Context(), definition, client.RawPatch("application/json-patch+json", patch)))
	kubeconfig, _ := w.account(t, statusController)
	bin, err := controlplane.FindBinDir()
	mustSucceed(t, err)
	log := filepath.Join(t.TempDir(), "log")
	process, err := childprocess.Start(childprocess.Command{
		Path: filepath.Join(bin, statusController), Args: []string{"--kubeconfig=" + kubeconfig}, Log: log,
	})
	mustSucceed(t, err)
	t.Cleanup(func() { _ = process.Stop(time.Second) })
	waitUntil(t, "the controller ends", func(context.Context) bool {
		content, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(content), "CustomResourceDefinition updatestatuses.config.openshift.io is not the one of this program")
	})
}

func mustSucceed(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
