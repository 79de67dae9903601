// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/informer"
)

// TestStatusController_faults installs and removes optional kinds while the program runs. It then kills the
// program at each write, and the leader of two replicas.
func TestStatusController_faults(t *testing.T) {
	t.Parallel()
	w := newStatusWorld(t)
	w.createOperator()
	w.createVersion()
	w.followOptionalKinds()
	w.killAtWrites()
}

// optionalDefinition returns the definition of an optional kind that serves one version.
func optionalDefinition(group, version, kind, plural string) *unstructured.Unstructured {
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	definition := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group, "scope": "Namespaced", "names": map[string]any{"kind": kind, "plural": plural},
		"versions": []any{map[string]any{
			"name": version, "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{"spec": anything, "status": anything},
			}},
		}},
	}}}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName(plural + "." + group)
	return definition
}

// optionalPool is a kind of pools that a cluster may have.
type optionalPool struct{ group, kind, plural string }

// optionalPools returns the kinds of pools that OpenShift does not always serve.
func optionalPools() []optionalPool {
	return []optionalPool{
		{"cluster.x-k8s.io", "MachineSet", "machinesets"},
		{"cluster.x-k8s.io", "MachineDeployment", "machinedeployments"},
		{"hypershift.openshift.io", "NodePool", "nodepools"},
	}
}

// hasPool reports whether a status has a section of a kind of pool.
func hasPool(status updatev1beta1.UpdateStatusStatus, group, kind string) bool {
	return slices.ContainsFunc(status.WorkerPools, func(p updatev1beta1.WorkerPoolStatus) bool {
		return p.Kind == kind && strings.HasPrefix(p.APIVersion, group+"/")
	})
}

// maxStart limits the time from a start until the status is confirmed, on a busy machine. It is less than a
// controller waits for the cache of an optional kind.
const maxStart = 25 * time.Second

// followOptionalKinds installs and uninstalls each optional kind, and finally installs another version of
// one. The program is not restarted and continues to report changes.
func (w *statusWorld) followOptionalKinds() {
	w.t.Helper()
	w.start()
	w.waitFor("the UpdateStatus is filled", func(s updatev1beta1.UpdateStatusStatus) bool { return s.Assessment != nil })
	for _, k := range optionalPools() {
		definition := optionalDefinition(k.group, "v1beta1", k.kind, k.plural)
		w.apply(w.t, []*unstructured.Unstructured{definition.DeepCopy()})
		pool := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"versionManagement": map[string]any{"pausedUntil": "true"}}}}
		pool.SetAPIVersion(k.group + "/v1beta1")
		pool.SetKind(k.kind)
		pool.SetNamespace("openshift-machine-api")
		pool.SetName("pool")
		waitUntil(w.t, "the API server accepts a "+k.kind, func(ctx context.Context) bool { return w.client.Create(ctx, pool.DeepCopy()) == nil })
		w.waitFor(k.kind+" of "+k.group+" is shown", func(s updatev1beta1.UpdateStatusStatus) bool { return hasPool(s, k.group, k.kind) })
		mustSucceed(w.t, w.client.Delete(w.t.Context(), definition))
		w.waitFor(k.kind+" of "+k.group+" is shown no longer", func(s updatev1beta1.UpdateStatusStatus) bool { return !hasPool(s, k.group, k.kind) })
	}
	// A newer cluster API may serve other versions only.
	newer := optionalDefinition("cluster.x-k8s.io", "v1beta9", "MachineSet", "machinesets")
	w.apply(w.t, []*unstructured.Unstructured{newer.DeepCopy()})
	before := w.operators()
	mustSucceed(w.t, w.typed.Create(w.t.Context(), &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "dns"}}))
	w.waitFor("another operator is counted", func(s updatev1beta1.UpdateStatusStatus) bool {
		return s.ControlPlane != nil && s.ControlPlane.Progress != nil && s.ControlPlane.Progress.Total == before+1
	})
	if !w.binary.process.Running() {
		w.t.Error("the program has ended")
	}
	mustSucceed(w.t, w.binary.process.Stop(time.Minute))

	// A start with that version does not wait for it.
	before = w.operators()
	mustSucceed(w.t, w.typed.Create(w.t.Context(), &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "etcd"}}))
	started := time.Now()
	w.start()
	w.waitFor("another operator is counted after a start", func(s updatev1beta1.UpdateStatusStatus) bool {
		return s.ControlPlane != nil && s.ControlPlane.Progress != nil && s.ControlPlane.Progress.Total == before+1
	})
	if took := time.Since(started); took > maxStart {
		w.t.Errorf("the first status after a start took %s, want at most %s", took, maxStart)
	}
	mustSucceed(w.t, w.binary.process.Stop(time.Minute))
	mustSucceed(w.t, w.client.Delete(w.t.Context(), newer))
}

// operators returns the number of operators in the published status.
func (w *statusWorld) operators() int32 {
	if plane := w.status(w.t.Context()).ControlPlane; plane != nil && plane.Progress != nil {
		return plane.Progress.Total
	}
	return 0
}

// statusWrites is a proxy that the program connects through. It kills the program at writes of the
// UpdateStatus.
type statusWrites struct {
	proxy *httputil.ReverseProxy

	mu       sync.Mutex
	process  *childprocess.Process // to kill; nil for none
	before   bool                  // it is killed before the write, else after it
	kills    int
	statuses []updatev1beta1.UpdateStatusStatus // as the API server has stored them
}

// ServeHTTP forwards a request and its response.
func (s *statusWrites) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/updatestatuses/") {
		s.proxy.ServeHTTP(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil && s.before {
		s.kill()
	}
	answer := httptest.NewRecorder()
	r.Header.Del("Accept-Encoding")
	s.proxy.ServeHTTP(answer, r)
	var stored updatev1beta1.UpdateStatus
	if answer.Code == http.StatusOK && json.Unmarshal(answer.Body.Bytes(), &stored) == nil {
		s.statuses = append(s.statuses, stored.Status)
	}
	if s.process != nil {
		s.kill()
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// kill kills the program, and ends its pending request.
func (s *statusWrites) kill() {
	_ = s.process.Kill()
	s.process, s.before = nil, !s.before
	s.kills++
	panic(http.ErrAbortHandler)
}

// target makes the next write kill a process.
func (s *statusWrites) target(process *childprocess.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = process
}

func (s *statusWrites) killed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kills
}

// killAtWrites kills the program before and after writes, while an informer reports other insights, and
// then the leader of two replicas.
func (w *statusWorld) killAtWrites() {
	t, ok := w.t.(*testing.T)
	if !ok {
		w.t.Fatal("this is no benchmark")
	}
	shop, err := informer.Start(t.Context(), w.client, "shop", "shop")
	mustSucceed(t, err)
	t.Cleanup(func() { _ = shop.Stop() })
	writes := &statusWrites{proxy: proxyOf(t, w.RESTConfig())}
	access, err := w.ServiceAccountConfig(t.Context(), home, statusController)
	mustSucceed(t, err)
	through := serveProxy(t, writes)
	through.BearerToken = access.BearerToken
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	mustSucceed(t, controlplane.WriteKubeconfig(kubeconfig, through))

	var uids []string
	report := func(uid string) {
		uids = append(uids, uid)
		var all []hooksv1alpha.Insight
		for _, uid := range uids {
			all = append(all, hooksv1alpha.Insight{
				UID: uid, Scope: updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane},
				Impact: updatev1beta1.InsightImpact{Level: updatev1beta1.LevelWarning, Summary: "Summary of " + uid},
			})
		}
		shop.Behave(informer.Behavior{Insights: all})
	}
	shown := func(uid string) func(updatev1beta1.UpdateStatusStatus) bool {
		return func(s updatev1beta1.UpdateStatusStatus) bool { _, found := observations(s)[uid]; return found }
	}
	for _, uid := range []string{"one", "two", "three", "four"} {
		report(uid)
		w.startWith(kubeconfig, "--leader-elect=false")
		kills := writes.killed()
		writes.target(w.binary.process)
		waitUntil(t, "the program is killed while "+uid+" is reported", func(context.Context) bool { return writes.killed() > kills })
	}
	w.startWith(kubeconfig, "--leader-elect=false")
	w.waitFor("the last insight is shown", shown("four"))
	mustSucceed(t, w.binary.process.Kill())

	election := []string{"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=2s"}
	w.startWith(kubeconfig, election...)
	leader := w.binary
	w.waitFor("the leader confirms the status", current(time.Now()))
	w.startWith(kubeconfig, election...)
	mustSucceed(t, leader.process.Kill())
	report("five")
	w.waitFor("the other replica takes over", shown("five"))
	writes.check(t)
}

// current returns whether a status was confirmed after a time.
func current(since time.Time) func(updatev1beta1.UpdateStatusStatus) bool {
	return func(s updatev1beta1.UpdateStatusStatus) bool {
		return s.ObservedTime != nil && s.ObservedTime.After(since)
	}
}

// observations returns when each insight of the informer was first observed.
func observations(status updatev1beta1.UpdateStatusStatus) map[string]time.Time {
	first := map[string]time.Time{}
	if status.ControlPlane == nil {
		return first
	}
	for _, of := range status.ControlPlane.UpdateInformers {
		for i := range of.Insights {
			if of.Name == "shop" {
				first[of.Insights[i].UID] = of.Insights[i].FirstObservedTime.Time
			}
		}
	}
	return first
}

// check compares each stored status with the one before.
func (s *statusWrites) check(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.statuses {
		if resolved := s.statuses[n].RecentlyResolved; len(resolved) > 0 {
			t.Errorf("status %d reports as resolved: %+v", n, resolved)
		}
		if n == 0 {
			continue
		}
		after := observations(s.statuses[n])
		for uid, first := range observations(s.statuses[n-1]) {
			if again, still := after[uid]; !still || !again.Equal(first) {
				t.Errorf("status %d: insight %s was first observed at %s, and then at %s", n, uid, first, again)
			}
		}
	}
	if len(s.statuses) < 5 {
		t.Errorf("%d writes were observed", len(s.statuses))
	}
}

// TestStatusController_reads_a_Secret_that_it_may_read moves the authorities of an informer to a Secret that
// the controller may not read, and runs the command that the condition names.
func TestStatusController_reads_a_Secret_that_it_may_read(t *testing.T) {
	t.Parallel()
	w := newStatusWorld(t)
	w.createOperator()
	w.createVersion()
	w.start()
	const name = "vault" // of the informer, its namespace, and the Secret
	server, err := informer.Start(t.Context(), w.client, name, name)
	mustSucceed(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	var registered updatev1beta1.UpdateInformer
	mustSucceed(t, w.typed.Get(t.Context(), client.ObjectKey{Name: name}, &registered))
	mustSucceed(t, w.typed.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}, Data: map[string][]byte{"ca.crt": registered.Spec.ClientConfig.CABundle},
	}))
	patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: "vault/vault"}}, "spec": {"clientConfig": {"caBundle": null}}}`, updatev1beta1.InjectCAAnnotation)
	mustSucceed(t, w.typed.Patch(t.Context(), &registered, client.RawPatch(types.MergePatchType, []byte(patch))))
	condition := func(ctx context.Context, name string) updatev1beta1.InformerCondition {
		if err := w.typed.Get(ctx, client.ObjectKeyFromObject(&registered), &registered); err != nil {
			return updatev1beta1.InformerCondition{}
		}
		for _, c := range registered.Status.Conditions {
			if c.Type == name {
				return c
			}
		}
		return updatev1beta1.InformerCondition{}
	}
	waitUntil(t, "the Secret may not be read", func(ctx context.Context) bool {
		return condition(ctx, updatev1beta1.ConditionCABundleResolved).Reason == updatev1beta1.ReasonSecretForbidden
	})
	_, command, _ := strings.Cut(condition(t.Context(), updatev1beta1.ConditionCABundleResolved).Message, "allow it: ")
	script := fmt.Sprintf("oc() { %s --kubeconfig %s \"$@\"; }\n%s", filepath.Join(w.BinDir(), "kubectl"), w.kubeconfig, command)
	if printed, err := exec.CommandContext(t.Context(), "bash", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", command, err, printed)
	}
	waitUntil(t, "the Secret is read, and the informer answers", func(ctx context.Context) bool {
		return condition(ctx, updatev1beta1.ConditionCABundleResolved).Status == metav1.ConditionTrue &&
			condition(ctx, updatev1beta1.ConditionReachable).Status == metav1.ConditionTrue
	})
}
