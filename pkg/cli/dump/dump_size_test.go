// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/scheme"
)

// Limits for a dump of 2,000 nodes and 40,000 pods.
const (
	bigNodes, bigPods = 2_000, 40_000
	maxDumpMemory     = 350 << 20
	maxJSONTime       = 6 * time.Second
	maxYAMLTime       = 20 * time.Second
)

// bigPod returns a realistic pod in YAML.
func bigPod(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Pod\nmetadata:\n  creationTimestamp: \"2026-11-20T10:00:00Z\"\n  labels:\n    app: shop\n    pod-template-hash: 7c9f4\n"+
		"  name: api-%d\n  namespace: shop-%d\n  ownerReferences:\n  - apiVersion: apps/v1\n    controller: true\n    kind: ReplicaSet\n    name: api-7c9f4\n    uid: a\n"+
		"  resourceVersion: \"%d\"\n  uid: %08d-0000-4000-8000-000000000000\nspec:\n  containers:\n", n, n%200, n+1, n)
	for c := range 3 {
		fmt.Fprintf(&b, "  - args:\n    - --verbosity=2\n    - |\n      a script\n      nodeName: no\n    env:\n")
		for e := range 15 {
			fmt.Fprintf(&b, "    - name: VARIABLE_%d\n      value: \"a value of container %d\"\n", e, c)
		}
		fmt.Fprintf(&b, "    image: quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:%064d\n    name: container-%d\n    resources:\n      requests:\n        cpu: 10m\n        memory: 50Mi\n"+
			"    volumeMounts:\n    - mountPath: /var/run/secrets/kubernetes.io/serviceaccount\n      name: kube-api-access\n      readOnly: true\n", c, c)
	}
	fmt.Fprintf(&b, "  nodeName: worker-%d\n  terminationGracePeriodSeconds: 30\n  tolerations:\n  - effect: NoExecute\n    key: node.kubernetes.io/not-ready\n"+
		"status:\n  conditions:\n  - lastTransitionTime: \"2026-11-20T10:00:05Z\"\n    status: \"True\"\n    type: Ready\n  containerStatuses:\n", n%bigNodes)
	for c := range 3 {
		fmt.Fprintf(&b, "  - containerID: cri-o://%064d\n    image: quay.io/openshift-release-dev/ocp-v4.0-art-dev\n    name: container-%d\n    ready: true\n    state:\n      running:\n        startedAt: \"2026-11-20T10:00:04Z\"\n", c, c)
	}
	b.WriteString("  phase: Running\n")
	return b.String()
}

// bigNode returns a realistic Node in YAML.
func bigNode(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Node\nmetadata:\n  name: worker-%d\n  labels:\n    node-role.kubernetes.io/worker: \"\"\nspec: {}\nstatus:\n  conditions:\n"+
		"  - lastHeartbeatTime: \"2026-11-22T10:00:00Z\"\n    lastTransitionTime: \"2026-11-20T10:00:00Z\"\n    status: \"True\"\n    type: Ready\n  images:\n", n)
	for i := range 50 {
		fmt.Fprintf(&b, "  - names:\n    - quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:%064d\n    sizeBytes: 500000000\n", i)
	}
	return b.String()
}

// dumpForms returns functions that write a large dump in each supported form.
func dumpForms() map[string]func(tb testing.TB, dir string, nodes, pods int) {
	item := func(object string) string {
		return "- " + strings.TrimSuffix(strings.ReplaceAll(object, "\n", "\n  "), "  ")
	}
	list := func(tb testing.TB, path string, n int, object func(int) string, asJSON bool) {
		tb.Helper()
		file, err := os.Create(path)
		if err != nil {
			tb.Fatal(err)
		}
		out := bufio.NewWriter(file)
		if asJSON {
			_, _ = out.WriteString(`{"apiVersion": "v1", "items": [`)
		} else {
			_, _ = out.WriteString("apiVersion: v1\nitems:\n")
		}
		for i := range n {
			text := item(object(i))
			if asJSON {
				content, err := yaml.YAMLToJSON([]byte(object(i)))
				if err != nil {
					tb.Fatal(err)
				}
				text = strings.Repeat(",", min(i, 1)) + "\n" + string(content)
			}
			_, _ = out.WriteString(text)
		}
		end := "kind: List\nmetadata:\n  resourceVersion: \"\"\n"
		if asJSON {
			end = `], "kind": "List", "metadata": {"resourceVersion": ""}}`
		}
		_, _ = out.WriteString(end)
		if err := out.Flush(); err != nil {
			tb.Fatal(err)
		}
		if err := file.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	return map[string]func(testing.TB, string, int, int){
		"JSON lists": func(tb testing.TB, dir string, nodes, pods int) {
			tb.Helper()
			list(tb, filepath.Join(dir, "nodes.json"), nodes, bigNode, true)
			list(tb, filepath.Join(dir, "pods.json"), pods, bigPod, true)
		},
		"YAML lists": func(tb testing.TB, dir string, nodes, pods int) {
			tb.Helper()
			list(tb, filepath.Join(dir, "nodes.yaml"), nodes, bigNode, false)
			list(tb, filepath.Join(dir, "pods.yaml"), pods, bigPod, false)
		},
		"files": func(tb testing.TB, dir string, nodes, pods int) {
			tb.Helper()
			write := func(folder string, n int, object func(int) string) {
				if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
					tb.Fatal(err)
				}
				for i := range n {
					if err := os.WriteFile(filepath.Join(dir, folder, fmt.Sprintf("%d.yaml", i)), []byte("---\n"+object(i)), 0o600); err != nil {
						tb.Fatal(err)
					}
				}
			}
			write("cluster-scoped-resources/core/nodes", nodes, bigNode)
			write("namespaces/shop/pods", pods, bigPod)
		},
	}
}

// checkBigDump checks that everything written was read.
func checkBigDump(tb testing.TB, d *Dump, nodes, pods int) {
	tb.Helper()
	if len(d.Problems) > 0 {
		tb.Fatalf("problems: %q", d.Problems)
	}
	if d.count != nodes+pods {
		tb.Errorf("%d objects, want %d", d.count, nodes+pods)
	}
	var on corev1.PodList
	if err := d.List(tb.Context(), &on, client.MatchingFields{"spec.nodeName": "worker-1"}); err != nil {
		tb.Fatal(err)
	}
	if want := (pods + bigNodes - 2) / bigNodes; len(on.Items) != want {
		tb.Fatalf("%d pods on a node, want %d", len(on.Items), want)
	}
	pod := on.Items[0]
	if pod.Labels["app"] != "shop" || len(pod.OwnerReferences) != 1 || *pod.Spec.TerminationGracePeriodSeconds != 30 || pod.Status.Phase != corev1.PodRunning {
		tb.Errorf("pod %+v", pod)
	}
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := d.List(tb.Context(), all); err != nil || len(all.Items) != nodes {
		tb.Errorf("%d nodes, want %d: %v", len(all.Items), nodes, err)
	}
	if want := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC); !d.Newest.Equal(want) {
		tb.Errorf("newest time %s, want %s", d.Newest, want)
	}
}

// TestDump_forms reads the same objects from each form.
func TestDump_forms(t *testing.T) {
	t.Parallel()
	for name, write := range dumpForms() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, 3, 10)
			d, err := Read(dir, scheme.Shared(), DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			checkBigDump(t, d, 3, 10)
		})
	}
}

// BenchmarkDump reads a large dump in each form. It fails if the memory or CPU limit is exceeded.
func BenchmarkDump(b *testing.B) {
	for name, write := range dumpForms() {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			dir := b.TempDir()
			write(b, dir, bigNodes, bigPods)
			limit := maxYAMLTime
			if name == "JSON lists" {
				limit = maxJSONTime
			}
			for b.Loop() {
				debug.FreeOSMemory()
				before, peak, stop := processorTime(b), make(chan uint64), make(chan struct{})
				go func() { peak <- peakMemory(stop) }()
				d, err := Read(dir, scheme.Shared(), DefaultLimits)
				if err != nil {
					b.Fatal(err)
				}
				close(stop)
				memory, took := <-peak, processorTime(b)-before
				checkBigDump(b, d, bigNodes, bigPods)
				b.ReportMetric(float64(memory>>20), "MiB")
				b.ReportMetric(took.Seconds(), "processor-s")
				b.ReportMetric(0, "ns/op")
				if memory > maxDumpMemory || took > limit {
					b.Errorf("%d MiB and %s of processor time, limits %d MiB and %s", memory>>20, took, maxDumpMemory>>20, limit)
				}
			}
		})
	}
}

// processorTime returns the CPU time of the process.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// peakMemory returns the maximum memory usage until stop is closed.
func peakMemory(stop <-chan struct{}) (peak uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	tick := time.NewTicker(5 * time.Millisecond) //nolint:forbidigo // the memory of this process is sampled in real time
	defer tick.Stop()
	for {
		metrics.Read(samples)
		peak = max(peak, samples[0].Value.Uint64()-samples[1].Value.Uint64())
		select {
		case <-stop:
			return peak
		case <-tick.C:
		}
	}
}
