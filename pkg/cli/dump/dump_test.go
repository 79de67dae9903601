// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/scheme"
)

// writeDump writes files to a new folder and reads them.
func writeDump(t *testing.T, files map[string]string, limits Limits) *Dump {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Read(dir, scheme.Shared(), limits)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// node returns a Node in YAML.
func node(name string) string {
	return "apiVersion: v1\nkind: Node\nmetadata:\n  name: " + name + "\n"
}

// nodeNames returns the names of the nodes in a dump, or the list error.
func nodeNames(t *testing.T, d *Dump) ([]string, error) {
	t.Helper()
	var nodes corev1.NodeList
	if err := d.List(t.Context(), &nodes); err != nil {
		return nil, err
	}
	var names []string
	for i := range nodes.Items {
		names = append(names, nodes.Items[i].Name)
	}
	return names, nil
}

func TestDump_kinds_decide(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files map[string]string
		want  []string
	}{
		"one object a file":           {map[string]string{"b.yaml": node("b"), "deep/below/a.yaml": node("a")}, []string{"a", "b"}},
		"several documents":           {map[string]string{"all.yaml": "---\n" + node("a") + "---\n# a comment\n" + node("b") + "---\n"}, []string{"a", "b"}},
		"list of kubectl":             {map[string]string{"nodes": "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: a}\nkind: List\nmetadata: {}\n"}, []string{"a"}},
		"list of the API server":      {map[string]string{"x.json": `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}`}, []string{"a"}},
		"empty list":                  {map[string]string{"x.json": `{"kind":"NodeList","apiVersion":"v1","items":[]}`}, nil},
		"null list":                   {map[string]string{"x.json": `{"kind":"NodeList","apiVersion":"v1","items":null}`}, nil},
		"list in a list":              {map[string]string{"x.json": `{"kind":"List","apiVersion":"v1","items":[{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}]}`}, []string{"a"}},
		"JSON objects in a row":       {map[string]string{"x": `{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"}} {"kind":"Node","apiVersion":"v1","metadata":{"name":"b"}}`}, []string{"a", "b"}},
		"JSON array":                  {map[string]string{"x.json": `[{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"}}]`}, []string{"a"}},
		"names of files do not count": {map[string]string{"pods/secrets.txt": node("a")}, []string{"a"}},
		"logs are skipped":            {map[string]string{"a.yaml": node("a"), "pod/current.log": `{"kind":"Node","tr`, "pod/notes": "kind of Node: {"}, []string{"a"}},
		"other kinds are skipped":     {map[string]string{"a.yaml": node("a"), "e.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nbroken: [\n"}, []string{"a"}},
		"an empty list of Events":     {map[string]string{"a.yaml": node("a"), "events.yaml": "apiVersion: v1\nkind: EventList\nitems: []\n"}, []string{"a"}},
		"the newer of two counts once": {map[string]string{
			"1.yaml": node("a") + "  resourceVersion: \"9\"\n", "2.yaml": node("a") + "  resourceVersion: \"10\"\n",
		}, []string{"a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := writeDump(t, test.files, DefaultLimits)
			got, err := nodeNames(t, d)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			if len(d.Problems) > 0 {
				t.Errorf("problems: %q", d.Problems)
			}
		})
	}
}

// Data missing from a dump never counts as absent.
func TestDump_missing_data_is_an_error(t *testing.T) {
	t.Parallel()
	small := DefaultLimits
	small.documentBytes = 70
	few := DefaultLimits
	few.files = 3
	tests := map[string]struct {
		files  map[string]string
		limits Limits
		want   string // in the list error and in the problems
	}{
		"no node and no list":          {map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"}, DefaultLimits, "not in the dump"},
		"broken document after a node": {map[string]string{"a.yaml": node("a") + "---\n" + node("b") + "  labels: {\n"}, DefaultLimits, "a.yaml is broken"},
		"truncated JSON list":          {map[string]string{"a.yaml": node("a"), "b.json": `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"b"}},{"meta`}, DefaultLimits, "b.json is broken"},
		"truncated list of kubectl":    {map[string]string{"a.yaml": node("a"), "b.yaml": "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: b}\n"}, DefaultLimits, "b.yaml is broken"},
		"last line without an end":     {map[string]string{"a.yaml": strings.TrimSuffix(node("a"), "\n")}, DefaultLimits, "a.yaml may be cut off"},
		"page of a list":               {map[string]string{"a.json": `{"kind":"NodeList","apiVersion":"v1","metadata":{"continue":"x"},"items":[{"metadata":{"name":"a"}}]}`}, DefaultLimits, "only a part"},
		"empty file of a must-gather":  {map[string]string{"core/nodes/a.yaml": node("a"), "core/nodes/b.yaml": ""}, DefaultLimits, "core/nodes/b.yaml is empty"},
		"node without a name":          {map[string]string{"a.yaml": node("a") + "---\napiVersion: v1\nkind: Node\n"}, DefaultLimits, "without a name"},
		"items are no list":            {map[string]string{"a.yaml": node("a"), "b.yaml": "apiVersion: v1\nkind: NodeList\nitems: {}\n"}, DefaultLimits, "no list"},
		"item is not an object":        {map[string]string{"a.yaml": node("a"), "b.yaml": "apiVersion: v1\nkind: NodeList\nitems: [1]\n"}, DefaultLimits, "not an object"},
		"file is too large":            {map[string]string{"a.yaml": node("a"), "b.yaml": node("b") + strings.Repeat("  # x\n", 30)}, small, "b.yaml has a document that is larger"},
		"too many files":               {map[string]string{"a.yaml": node("a"), "b.yaml": node("b"), "c.yaml": node("c")}, few, "too large"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := writeDump(t, test.files, test.limits)
			if names, err := nodeNames(t, d); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("nodes %q, error %v, want an error with %q", names, err, test.want)
			}
			if problems := strings.Join(d.Problems, "\n"); len(d.Problems) > 0 && !strings.Contains(problems, test.want) {
				t.Errorf("problems %q, want %q", problems, test.want)
			}
		})
	}
}

func TestDump_a_broken_file_affects_its_kind_only(t *testing.T) {
	t.Parallel()
	d := writeDump(t, map[string]string{
		"a.yaml": node("a"),
		"b.yaml": "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigPool\nmetadata: {name: p\n",
	}, DefaultLimits)
	if _, err := nodeNames(t, d); err != nil {
		t.Errorf("listing nodes: %v", err)
	}
	if err := d.List(t.Context(), &mcfgv1.MachineConfigPoolList{}); err == nil {
		t.Error("the pools are listed although a file with pools is broken")
	}
}

func TestDump_links_stay_in_the_folder(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside.yaml")
	if err := os.WriteFile(outside, []byte(node("outside")), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(node("a")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	d, err := Read(dir, scheme.Shared(), DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if names, err := nodeNames(t, d); err != nil || len(names) != 1 {
		t.Errorf("nodes %q, error %v, want only the one in the folder", names, err)
	}
}

func TestDump_reads(t *testing.T) {
	t.Parallel()
	d := writeDump(t, map[string]string{
		"version.yaml": "apiVersion: config.openshift.io/v1\nkind: ClusterVersion\nmetadata: {name: version}\nspec: {clusterID: x, versionManagement: {pausedUntil: \"true\"}}\n",
		"pods.yaml": "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: p, namespace: a, labels: {app: x}}\n  spec: {nodeName: n1}\n" +
			"- metadata: {name: q, namespace: a}\n  spec: {nodeName: n2}\n- metadata: {name: r, namespace: b}\n",
		"pdb.yaml": "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: old, namespace: a}\n",
	}, DefaultLimits)
	var version configv1.ClusterVersion
	if err := d.Get(t.Context(), client.ObjectKey{Name: "version"}, &version); err != nil || version.Spec.ClusterID != "x" {
		t.Errorf("ClusterVersion %+v, error %v", version.Spec, err)
	}
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(configv1.GroupVersion.WithKind("ClusterVersion"))
	if err := d.Get(t.Context(), client.ObjectKey{Name: "version"}, raw); err != nil || raw.Object["spec"].(map[string]any)["versionManagement"] == nil {
		t.Errorf("unstructured ClusterVersion %v, error %v", raw.Object, err)
	}
	if err := d.Get(t.Context(), client.ObjectKey{Name: "other"}, &version); !apierrors.IsNotFound(err) {
		t.Errorf("getting what a complete kind lacks: %v, want not found", err)
	}
	if err := d.Get(t.Context(), client.ObjectKey{Name: "n1"}, &corev1.Node{}); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("getting an object of a kind that the dump lacks: %v, want an error other than not found", err)
	}
	for name, opts := range map[string][]client.ListOption{
		"p":     {client.InNamespace("a"), client.MatchingLabels{"app": "x"}},
		"q":     {client.MatchingFields{"spec.nodeName": "n2"}},
		"p,q":   {client.InNamespace("a")},
		"p,q,r": nil,
	} {
		pods := &metav1.PartialObjectMetadataList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		if err := d.List(t.Context(), pods, opts...); err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range pods.Items {
			names = append(names, pods.Items[i].Name)
		}
		if got := strings.Join(names, ","); got != name {
			t.Errorf("pods %s, want %s", got, name)
		}
	}
	if err := d.List(t.Context(), &policyv1.PodDisruptionBudgetList{}); err == nil || !strings.Contains(err.Error(), "v1beta1") {
		t.Errorf("listing a version that the dump lacks: %v, want an error that names the other version", err)
	}
}

func TestDump_alerts(t *testing.T) {
	t.Parallel()
	const firing = `{"status":"success","data":{"alerts":[{"labels":{"alertname":"A","namespace":"n","severity":"critical"},"annotations":{"summary":"s"},"state":"firing","activeAt":"2026-11-22T14:00:00.5Z","value":"1e+00"}]}}`
	tests := map[string]struct {
		content string
		want    []string
		err     string
	}{
		"firing":           {firing, []string{"A/n/critical"}, ""},
		"none fires":       {`{"status":"success","data":{"alerts":[]}}`, nil, ""},
		"no response":      {node("b"), nil, "not in the dump"},
		"null":             {`{"status":"success","data":{"alerts":null}}`, nil, "null"},
		"an error":         {`{"status":"error","data":{"alerts":[]}}`, nil, "success"},
		"of another shape": {`{"status":"success","data":{"alerts":[{"labels":1}]}}`, nil, "broken"},
		"truncated":        {firing[:120], nil, "broken"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := writeDump(t, map[string]string{"a.yaml": node("a"), "some-file": test.content}, DefaultLimits)
			alerts, err := d.ActiveAlerts(t.Context())
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one with %q", err, test.err)
				}
				return
			}
			var got []string
			for _, alert := range alerts {
				got = append(got, alert.Name+"/"+alert.Namespace+"/"+alert.Severity)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("error %v, alerts (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestDump_keeps_the_newer_of_two_objects(t *testing.T) {
	t.Parallel()
	labeled := func(version string) string {
		return node("a") + "  resourceVersion: \"" + version + "\"\n  labels: {version: \"" + version + "\"}\n"
	}
	for name, files := range map[string]map[string]string{
		"newer first": {"1.yaml": labeled("10"), "2.yaml": labeled("9")},
		"newer last":  {"1.yaml": labeled("9"), "2.yaml": labeled("10")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var kept corev1.Node
			if err := writeDump(t, files, DefaultLimits).Get(t.Context(), client.ObjectKey{Name: "a"}, &kept); err != nil || kept.Labels["version"] != "10" {
				t.Errorf("version %q, error %v, want 10", kept.Labels["version"], err)
			}
		})
	}
}

func TestDump_newest_time(t *testing.T) {
	t.Parallel()
	d := writeDump(t, map[string]string{
		"a.yaml": node("a") + "  creationTimestamp: \"2026-11-22T10:00:00Z\"\nstatus:\n  conditions:\n  - {type: Ready, lastHeartbeatTime: \"2026-11-22T14:00:00Z\"}\n",
		"l.yaml": "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: l}\nspec: {renewTime: \"2026-11-22T14:00:05.123456Z\"}\n",
	}, DefaultLimits)
	if want := time.Date(2026, 11, 22, 14, 0, 5, 123456000, time.UTC); !d.Newest.Equal(want) {
		t.Errorf("newest time %s, want %s", d.Newest, want)
	}
}

func FuzzDump(f *testing.F) {
	f.Add("a.yaml", node("a"))
	f.Add("a.json", `{"kind":"List","items":[{"kind":"Node"}]}`)
	f.Add("x", `{"status":"success","data":{"alerts":[{}]}}`)
	scheme := scheme.New()
	f.Fuzz(func(t *testing.T, name, content string) {
		d := New(scheme, DefaultLimits)
		if formatOf(name, []byte(content)) == formatJSON {
			_ = d.addJSON(name, strings.NewReader(content))
		} else {
			_ = d.addYAML(name, strings.NewReader(content))
		}
		_, _ = nodeNames(t, d)
		_, _ = d.ActiveAlerts(t.Context())
	})
}
