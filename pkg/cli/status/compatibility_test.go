// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/dump"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/scheme"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
)

// Limits on the requests for a status, without discovery.
const (
	maxRequests = 4  // with the Update Status Controller
	maxLists    = 12 // without it, in addition to the ClusterVersion and the UpdateStatus
)

// requestsOfStatus returns the requests for the status of a cluster with the given number of workers. A tenth
// of them is being drained, and the Update Status Controller is not installed.
func requestsOfStatus(tb testing.TB, workers int) []string {
	tb.Helper()
	objects := []client.Object{&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"}}}
	for i := range workers {
		node := clitest.HealthyNode(fmt.Sprintf("more-%04d", i), "worker")
		if i < workers/10 {
			drainNode(node)
		}
		objects = append(objects, node)
	}
	cluster := clitest.NewFakeCluster(tb, objects...)
	cluster.Err = clitest.ErrorOf("UpdateStatus", clitest.NoMatch("UpdateStatus"))
	got := runStatus(tb, cluster.Cluster, statusOptions{}, "")
	if !strings.Contains(got.Out, fmt.Sprintf("of %d nodes", workers+1)) {
		tb.Errorf("%d nodes:\n%s", workers, got.Out)
	}
	if lists := countLists(cluster.Requests); lists > maxLists || len(cluster.Requests) > maxLists+2 {
		tb.Errorf("%d nodes: requests %q, want %d lists, the ClusterVersion, and the UpdateStatus at most", workers, cluster.Requests, maxLists)
	}
	return cluster.Requests
}

func countLists(requests []string) int {
	return len(slices.DeleteFunc(slices.Clone(requests), func(r string) bool { return !strings.HasPrefix(r, "list ") }))
}

// The number of requests does not depend on the size of the cluster.
func TestStatus_requests_do_not_grow_with_the_nodes(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(requestsOfStatus(t, 50), requestsOfStatus(t, 2000)); diff != "" {
		t.Errorf("requests (-50 nodes +2000 nodes):\n%s", diff)
	}
}

// BenchmarkStatusRequests counts the requests for a status.
func BenchmarkStatusRequests(b *testing.B) {
	b.Logf("Method: the requests of `status` that a client records, without discovery and without the further pages of long lists. A tenth of the workers is being drained. "+
		"Limits: %d with the Update Status Controller; %d lists, the ClusterVersion, and the UpdateStatus without it, and the same for 50 and for 2,000 nodes.", maxRequests, maxLists)
	b.Run("with_the_controller", func(b *testing.B) {
		for b.Loop() {
			cluster := clitest.NewFakeCluster(b, updateStatus(progressingScreen()), clitest.Lease(0))
			runStatus(b, cluster.Cluster, statusOptions{}, "")
			if len(cluster.Requests) > maxRequests {
				b.Errorf("requests %q, want at most %d", cluster.Requests, maxRequests)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(len(cluster.Requests)), "requests")
		}
	})
	var small []string
	for _, workers := range []int{50, 2000} {
		b.Run(fmt.Sprintf("without_it_%d_nodes", workers), func(b *testing.B) {
			for b.Loop() {
				requests := requestsOfStatus(b, workers)
				if small == nil {
					small = requests
				}
				if diff := cmp.Diff(small, requests); diff != "" {
					b.Errorf("requests (-first cluster +%d nodes):\n%s", workers, diff)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(len(requests)), "requests")
				b.ReportMetric(float64(countLists(requests)), "lists")
			}
		})
	}
}

// drainNode makes the machine config operator drain a node for another release.
func drainNode(node *corev1.Node) {
	const mco = "machineconfiguration.openshift.io/"
	node.Annotations[mco+"desiredConfig"], node.Annotations[mco+"desiredDrain"] = "rendered-worker-2", "drain-rendered-worker-2"
	node.Annotations[mco+"currentConfig"], node.Annotations[mco+"state"] = "rendered-worker-0", "Working"
	node.Spec.Unschedulable = true
}

// Fields added by newer definitions do not change the verdict.
func TestStatus_with_newer_definitions(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"idle": 0, "control plane": 20 * time.Minute, "workers": 30 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clitest.NewSimulated(t, openshiftsim.ClusterSpec{})
			if after > 0 {
				s.Update(t, after)
			}
			dir := s.Dump(t)
			want := replay(t, s, dir)
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil || len(files) == 0 {
				t.Fatalf("%d files, error %v", len(files), err)
			}
			for _, file := range files {
				rewrite(t, file, addUnknownFields)
			}
			if diff := cmp.Diff(want, replay(t, s, dir)); diff != "" {
				t.Errorf("status (-known fields +unknown fields):\n%s", diff)
			}
		})
	}
}

// replay returns the status of a dump.
func replay(t *testing.T, s clitest.Simulated, dir string) updatev1beta1.UpdateStatusStatus {
	t.Helper()
	d, err := dump.Read(dir, scheme.Shared(), dump.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Problems) > 0 {
		t.Fatalf("problems: %q", d.Problems)
	}
	_, status := computed(t, &session.Cluster{Reader: d, Clock: session.FixedClock(s.World.Now()), Dump: d, Prometheus: d})
	return status
}

// rewrite changes a YAML file.
func rewrite(t *testing.T, file string, change func(any)) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := yaml.Unmarshal(content, &value); err != nil {
		t.Fatal(err)
	}
	change(value)
	if content, err = yaml.Marshal(value); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// addUnknownFields adds fields to all objects except maps with arbitrary keys.
func addUnknownFields(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if key != "labels" && key != "annotations" && key != "matchLabels" {
				addUnknownFields(field)
			}
		}
		_, isQuantity := value["cpu"]
		if !isQuantity && len(value) > 0 {
			value["zAddedLater"] = map[string]any{"numbers": []any{1, "two"}}
		}
	case []any:
		for _, item := range value {
			addUnknownFields(item)
		}
	}
}

// Older definitions lack fields. No missing field may make an update in progress look like no update.
func TestStatus_with_older_definitions(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"control plane": 20 * time.Minute, "workers": 30 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clitest.NewSimulated(t, openshiftsim.ClusterSpec{})
			s.Update(t, after)
			dir := s.Dump(t)
			if state := replay(t, s, dir).Assessment.State; state != updatev1beta1.StateProgressing {
				t.Fatalf("state %s", state)
			}
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil {
				t.Fatal(err)
			}
			fields := map[string]bool{}
			contents := map[string][]byte{}
			for _, file := range files {
				rewrite(t, file, func(value any) { statusFields(value, fields) })
				if contents[file], err = os.ReadFile(file); err == nil {
					contents[file], err = yaml.YAMLToJSON(contents[file]) // it is read in a fraction of the time
				}
				if err != nil {
					t.Fatal(err)
				}
				writeJSON(t, file, json.RawMessage(contents[file]))
			}
			if len(fields) < 20 {
				t.Fatalf("only %d fields", len(fields))
			}
			without := func(field string) {
				for file, content := range contents {
					if !bytes.Contains(content, []byte(`"`+field+`":`)) {
						continue
					}
					defer writeJSON(t, file, json.RawMessage(content))
					var value any
					if err := json.Unmarshal(content, &value); err != nil {
						t.Fatal(err)
					}
					removeStatusField(value, field)
					writeJSON(t, file, value)
				}
				if a := replay(t, s, dir).Assessment; a == nil || a.State == updatev1beta1.StateIdle {
					t.Errorf("without the field %s: %+v", field, a)
				}
			}
			for field := range fields {
				without(field)
			}
		})
	}
}

// statusFields collects the status fields of all objects.
func statusFields(value any, fields map[string]bool) {
	eachStatus(value, func(status map[string]any) {
		for field := range status {
			fields[field] = true
		}
	})
}

// removeStatusField removes a field from the status of all objects, at any depth.
func removeStatusField(value any, field string) {
	eachStatus(value, func(status map[string]any) { delete(status, field) })
}

// eachStatus calls visit for each object in the status of an object or of list items.
func eachStatus(value any, visit func(map[string]any)) {
	object, ok := value.(map[string]any)
	if !ok {
		return
	}
	if items, ok := object["items"].([]any); ok {
		for _, item := range items {
			eachStatus(item, visit)
		}
	}
	var within func(any)
	within = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			visit(value)
			for _, field := range value {
				within(field)
			}
		case []any:
			for _, item := range value {
				within(item)
			}
		}
	}
	within(object["status"])
}

// A newer controller may publish values that this version does not know. They never count as good news and
// never hide other facts.
func TestStatus_of_a_newer_controller(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*updatev1beta1.Assessment)
		code   session.ExitCode
		want   string
	}{
		"unknown state":             {func(a *updatev1beta1.Assessment) { a.State, a.ActionRequired = "Blocked", false }, session.ExitUnknown, "UNKNOWN"},
		"no state":                  {func(a *updatev1beta1.Assessment) { a.State, a.ActionRequired = "", false }, session.ExitUnknown, "UNKNOWN"},
		"unknown state, act":        {func(a *updatev1beta1.Assessment) { a.State, a.ActionRequired = "Blocked", true }, session.ExitActionRequired, "UNKNOWN"},
		"unknown type of remedy":    {func(a *updatev1beta1.Assessment) { a.Remedy.Type = "Suggestion" }, session.ExitActionRequired, "oc -n shop scale"},
		"no remedy":                 {func(a *updatev1beta1.Assessment) { a.Remedy = nil }, session.ExitActionRequired, "oc update status --details"},
		"no sections and no causes": {func(a *updatev1beta1.Assessment) { a.Sections, a.Causes = nil, nil }, session.ExitActionRequired, "STUCK"},
		"unknown reason":            {func(a *updatev1beta1.Assessment) { a.Causes[0].Reason, a.Causes[0].Level = "Odd", "fatal" }, session.ExitActionRequired, "PodDisruptionBudget shop/api"},
		"no sources":                {func(a *updatev1beta1.Assessment) { a.Sources = nil }, session.ExitActionRequired, "STUCK"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := stuckDrainScreen()
			made.assessment.Release = "4.20.6" // version of the ClusterVersion
			tc.change(&made.assessment)
			cluster := clitest.NewFakeCluster(t, updateStatus(made), clitest.Lease(0))
			for _, o := range []statusOptions{{}, {details: true}} {
				got := runStatus(t, cluster.Cluster, o, "")
				if got.Code != tc.code || !strings.Contains(got.Out, tc.want) || got.ErrOut != "" {
					t.Errorf("exit code %d, want %d and %q; error %q:\n%s", got.Code, tc.code, tc.want, got.ErrOut, got.Out)
				}
				clitest.CheckWidth(t, got.Out, screen.DefaultWidth)
			}
		})
	}
}

// Golden texts for the wide output and for a user with limited permissions.
func TestStatus_texts(t *testing.T) {
	t.Parallel()
	published := updateStatus(stuckDrainScreen())
	published.Status.Assessment.Release = "4.20.6"
	denied := func(kind string) error {
		if kind == "Node" || kind == "PodDisruptionBudget" {
			return clitest.Forbidden()
		}
		return clitest.ErrorOf("UpdateStatus", clitest.NoMatch("UpdateStatus"))(kind)
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		err     func(string) error
		format  string
		code    session.ExitCode
	}{
		"wide":      {[]client.Object{published, clitest.Lease(4 * time.Second)}, nil, "wide", session.ExitActionRequired},
		"forbidden": {nil, denied, "", session.ExitUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clitest.NewFakeCluster(t, tc.objects...)
			if tc.err != nil {
				cluster.Err = tc.err
			}
			got := runStatus(t, cluster.Cluster, statusOptions{}, tc.format)
			if got.Code != tc.code || got.ErrOut != "" {
				t.Errorf("exit code %d, error %q", got.Code, got.ErrOut)
			}
			clitest.Golden(t, "status/"+name+".txt", got.Out, true)
		})
	}
}
