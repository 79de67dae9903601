// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/report"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/scheme"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
)

func TestFleetReport_of_a_dump(t *testing.T) {
	t.Parallel()
	dump, folder := fleetDump(t, storesUpgrade()), t.TempDir()
	report := func(args ...string) clitest.Result {
		return run(t, append([]string{"fleet", "report", "-n", "fleet", "--replay", dump, "--now", clitest.Now.Format(time.RFC3339)}, args...)...)
	}
	file := filepath.Join(folder, "stores.html")
	if got := report("stores", file); got.Code != session.ExitDone || got.Out != "Wrote "+file+": managedclustersupgrade/stores, 2 clusters, in progress, no action needed.\n" {
		t.Errorf("exit code %d: %s%s", got.Code, got.Out, got.ErrOut)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<h1>stores: upgrade to 4.20.6</h1>", `<a href="#cluster-b">b</a>`, `id="cluster-b"`, "Superseded: another release"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for name, tc := range map[string]struct {
		args []string
		code session.ExitCode
		want string
	}{
		"standard output":      {[]string{"stores", "-", "--state", "Failed"}, session.ExitDone, "clusters in other states than Failed"},
		"no file":              {[]string{"stores"}, session.ExitUsage, "name the FILE to write after stores, for example stores.html"},
		"a file that exists":   {[]string{"stores", file}, session.ExitUsage, "replace it with --overwrite"},
		"a file to replace":    {[]string{"stores", file, "--overwrite"}, session.ExitDone, "Wrote "},
		"an unknown state":     {[]string{"stores", "-", "--state", "failed"}, session.ExitUsage, "must be one of NotStarted"},
		"an unknown upgrade":   {[]string{"shops", "-"}, session.ExitFailed, "check the name"},
		"a file and --serve":   {[]string{"stores", file, "--serve"}, session.ExitUsage, "accepts 1 arg"},
		"a state and --serve":  {[]string{"stores", "--state", "Failed", "--serve"}, session.ExitUsage, "serve"},
		"an unknown served":    {[]string{"shops", "--serve"}, session.ExitFailed, "check the name"},
		"a filter of the file": {[]string{"stores", "-", "--state", "Complete"}, session.ExitDone, "No clusters found."},
	} {
		if got := report(tc.args...); got.Code != tc.code || !strings.Contains(got.Out+got.ErrOut, tc.want) {
			t.Errorf("%s: exit code %d, want %d with %q:\n%.2000s", name, got.Code, tc.code, tc.want, got.Out+got.ErrOut)
		}
	}
}

// manyStores returns a hub with the given number of clusters, all of them started.
func manyStores(n int) []client.Object {
	u := storesUpgrade()
	placement := &ocmv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "all"}}
	placement.Status.NumberOfSelectedClusters = int32(n)
	decision := &ocmv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "all-1", Labels: map[string]string{ocmv1beta1.PlacementLabel: "all"}}}
	objects := []client.Object{u, placement, decision}
	for i := range n {
		name := fmt.Sprintf("store-%04d", i)
		decision.Status.Decisions = append(decision.Status.Decisions, ocmv1beta1.ClusterDecision{ClusterName: name})
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"note": strings.Repeat("x", 4000)}}}
		cluster.Spec.HubAcceptsClient = true
		run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: admission.RunName(u), Labels: map[string]string{fleetv1beta1.UpgradeLabel: "u1"}}}
		run.Spec.ManagedClustersUpgrade = fleetv1alpha1.UpgradeReference{Namespace: "fleet", Name: "stores", UID: "u1"}
		run.Spec.Attempt, run.Spec.AdmissionTime, run.Status.Attempt = 1, metav1.NewTime(clitest.Now), 1
		run.Status.State, run.Status.Message = fleetv1alpha1.StatePartialUpgrade, strings.Repeat("waiting ", 400)
		objects = append(objects, cluster, run)
	}
	return objects
}

func TestFleetServer(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(clitest.Now)
	var failure error
	lists := 0
	reader := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(manyStores(250)...).Build()
	counted := interceptor.NewClient(reader, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, isRuns := list.(*fleetv1alpha1.ClusterUpgradeRunList); isRuns {
			lists++
		}
		if failure != nil {
			return failure
		}
		return c.List(ctx, list, opts...)
	}})
	p := session.New(session.Environment{Program: "/usr/bin/kubectl-update", Invoker: "oc", Clock: clock})
	s := fleetPages(p, &session.Cluster{Reader: counted, Clock: clock}, storesKey)
	get := func(path string) (int, string, http.Header) {
		w := httptest.NewRecorder()
		report.Pages(s.page).Handler("127.0.0.1:8000").ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8000"+path, http.NoBody))
		return w.Code, w.Body.String(), w.Header()
	}
	get("/")
	once := lists
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/":                               {http.StatusOK, "Page 1 of 3"},
		"/?page=3":                        {http.StatusOK, "store-0249"},
		"/?page=x&state=":                 {http.StatusOK, "Page 1 of 3"},
		"/?state=PartialUpgrade&page=2":   {http.StatusOK, "Page 2 of 3"},
		"/?state=Complete":                {http.StatusOK, "No clusters found."},
		"/?state=unknown":                 {http.StatusNotFound, "the page is at"},
		"/clusters/store-0007":            {http.StatusOK, `<a href="../">All clusters</a>`},
		"/clusters/kube-system":           {http.StatusNotFound, "the page is at"},
		"/clusters/":                      {http.StatusNotFound, "the page is at"},
		"/clusters/store-0007/../../else": {http.StatusNotFound, "the page is at"},
		"/else":                           {http.StatusNotFound, "the page is at"},
	} {
		if code, body, _ := get(path); code != want.code || !strings.Contains(body, want.text) {
			t.Errorf("%s: %d, want %d with %q: %.300s", path, code, want.code, want.text, body)
		}
	}
	if lists != once {
		t.Errorf("the runs were listed %d times, and %d times for the first page", lists, once)
	}
	clock.Step(report.MaxPageAge)
	failure = errors.New("down")
	if code, body, header := get("/"); code != http.StatusBadGateway || !strings.Contains(body, "down") || header.Get("Refresh") == "" {
		t.Errorf("while the hub is down: %d, %s, %v", code, body, header)
	}
	failure = nil
	if code, _, header := get("/"); code != http.StatusOK || header.Get("Content-Security-Policy") == "" {
		t.Errorf("afterwards: %d, %v", code, header)
	}
}

// A server for thousands of clusters keeps the rows of its table but not the objects.
func TestFleetServer_keeps_little_memory(t *testing.T) {
	const clusters = 3000
	reader := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(manyStores(clusters)...).Build()
	clock := clocktesting.NewFakeClock(clitest.Now)
	p := session.New(session.Environment{Program: "/usr/bin/kubectl-update", Invoker: "oc", Clock: clock})
	s := fleetPages(p, &session.Cluster{Reader: reader, Clock: clock}, storesKey)
	before := heap()
	served, err := s.Get(t.Context())
	if err != nil || len(served.Clusters) != clusters {
		t.Fatalf("%d clusters, %v", len(served.Clusters), err)
	}
	served = servedFleet{}
	kept := int64(heap()) - int64(before)
	t.Logf("%d bytes for a cluster", kept/clusters)
	if kept > clusters*1500 {
		t.Errorf("the server keeps %d kB for %d clusters", kept>>10, clusters)
	}
	goruntime.KeepAlive(s)
}

func heap() uint64 {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}
