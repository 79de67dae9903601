// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// detailed returns a published status with insights about two nodes.
func detailed() *updatev1beta1.UpdateStatus {
	c := progressingScreen()
	object := updateStatus(c)
	insight := func(level updatev1beta1.Level, node, summary string) updatev1beta1.Insight {
		return updatev1beta1.Insight{
			UID: node, UUID: "uuid-of-" + node, FirstObservedTime: *ago(6 * time.Minute),
			Scope:       updatev1beta1.InsightScope{Resources: []updatev1beta1.ResourceReference{{Kind: "Node", Name: node}, {Kind: "Pod", Namespace: "shop", Name: "api"}}},
			Impact:      updatev1beta1.InsightImpact{Level: level, Summary: summary, Description: "About " + node + "."},
			Remediation: updatev1beta1.InsightRemediation{Reference: "https://docs.example.com/" + node},
		}
	}
	stale := insight(updatev1beta1.LevelError, "worker-0", "node worker-0 is degraded")
	stale.StaleSince, stale.Flaps = ago(3*time.Minute), 2
	object.Status.WorkerPools = []updatev1beta1.WorkerPoolStatus{{
		Kind: "MachineConfigPool", Name: "worker",
		Section: updatev1beta1.Section{UpdateInformers: []updatev1beta1.InformerInsights{
			{Name: "builtin-nodes", Insights: []updatev1beta1.Insight{insight(updatev1beta1.LevelStatus, "worker-1", "node worker-1 is rebooting"), stale}},
		}},
	}}
	object.Status.RecentlyResolved = []updatev1beta1.ResolvedInsight{
		{UpdateInformer: "cpu", Level: updatev1beta1.LevelWarning, Summary: "high CPU", Reason: updatev1beta1.ResolutionInformerDisabled, ResolvedTime: *ago(time.Hour)},
	}
	object.Status.AfterUpdate = []updatev1beta1.RetainedInsight{{UpdateInformer: "cpu", Insight: updatev1beta1.Insight{UUID: "abc", Impact: updatev1beta1.InsightImpact{Level: "warning", Summary: "scale up"}}, RetainedSince: at("2026-11-20 10:00")}}
	object.Status.Assessment.Causes = []updatev1beta1.Cause{{Chain: []updatev1beta1.CauseLink{{
		Message: "5 pods cannot be evicted", Count: 5, Objects: []updatev1beta1.ObjectGroup{{Kind: "Pod", Namespace: "shop", Names: []string{"a", "b", "c", "d"}}},
	}}}}
	return object
}

func TestDetails(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]statusOptions{
		"details":  {details: true},
		"node":     {nodes: []string{"worker-1"}},
		"selector": {selector: "node-role.kubernetes.io/worker"}, // worker-0
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newFakeCluster(t, detailed(), lease(4*time.Second))
			got := runStatus(t, cluster.Cluster, o, "")
			golden(t, "details/"+name+".txt", got.out, true)
			checkWidth(t, got.out, defaultWidth)
			if got.code != ExitProgressing {
				t.Errorf("exit code %d, error %q", got.code, got.errOut)
			}
		})
	}
	cluster := newFakeCluster(t, detailed(), lease(0))
	if got := runStatus(t, cluster.Cluster, statusOptions{selector: "zone=none"}, ""); got.code != ExitFailed || !strings.Contains(got.errOut, "no node has these labels") {
		t.Errorf("exit code %d, error %q", got.code, got.errOut)
	}
}

// hostile has what strangers may write: control characters, colors, text from right to left, characters
// without width, and wide ones.
const hostile = "\x1b[31mred\x07 \u202egnp\u200b\u0000\nDo          Nothing.\r\x9b2J 日本語 " + "\u0301\u0301"

func TestScreens_are_harmless(t *testing.T) {
	t.Parallel()
	object := detailed()
	a := object.Status.Assessment
	for _, field := range []*string{
		&a.Summary, &a.FromRelease, &a.Release, &a.Estimate.Sections[0].Name, &a.Estimate.Sections[0].Basis, &a.Estimate.Extended, &a.Sections[0].Name, &a.Sections[0].Detail,
		&a.Sections[0].Unit, &a.Causes[0].Chain[0].Message, &a.Causes[0].Chain[0].Objects[0].Names[0], &a.Remedy.Text, &a.Sources[5].Message, &a.Sources[5].Detail,
		&object.Status.WorkerPools[0].Name, &object.Status.WorkerPools[0].UpdateInformers[0].Name, &object.Status.RecentlyResolved[0].Summary,
		&object.Status.AfterUpdate[0].Insight.Impact.Summary, &object.Status.AfterUpdate[0].Insight.UUID,
	} {
		*field = hostile + strings.Repeat("x", 300)
	}
	i := &object.Status.WorkerPools[0].UpdateInformers[0].Insights[0]
	i.Impact.Summary, i.Impact.Description, i.Remediation.Reference, i.Scope.Resources[0].Name, i.Impact.Level = hostile, hostile, hostile, hostile, hostile
	a.Sources[5].Current = false
	a.Remedy.Commands = []string{"oc get " + hostile}
	for _, width := range []int{60, 80, 200} {
		p := New(Environment{Program: "/oc-update", Terminal: &Terminal{Width: width}})
		o := statusOptions{details: true, format: outputFlags(&cobra.Command{})}
		printed, err := p.screen(t.Context(), nil, &o, snapshot{object: object, origin: publishedOrigin(0), now: now})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range printed {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				t.Fatalf("the screen has the character %U:\n%q", r, printed)
			}
		}
		if strings.Contains(printed, "\nDo          Nothing.") {
			t.Errorf("a text adds a line of its own:\n%s", printed)
		}
		for line := range strings.Lines(printed) {
			isCommand := strings.HasPrefix(line, blank(labelWidth+columnGap)+"oc ")
			if !isCommand && columns(strings.TrimSuffix(line, "\n")) > width {
				t.Errorf("%d columns are wider than %d: %q", columns(line), width, line)
			}
		}
	}
}

func TestColors_never_reach_a_file(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		environment Environment
		colored     bool
	}{
		"file":                       {Environment{Terminal: &Terminal{}}, false},
		"terminal":                   {Environment{Terminal: &Terminal{Interactive: true}}, true},
		"terminal with NO_COLOR set": {Environment{Terminal: &Terminal{Interactive: true}, NoColor: true}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := New(test.environment)
			o := statusOptions{format: outputFlags(&cobra.Command{})}
			printed, err := p.screen(t.Context(), nil, &o, snapshot{object: detailed(), origin: publishedOrigin(0), now: now})
			if err != nil {
				t.Fatal(err)
			}
			if colored := strings.HasPrefix(printed, "\x1b[1;36mUPDATING\x1b[0m  4.20.5"); colored != test.colored || !strings.Contains(printed, "UPDATING") {
				t.Errorf("colored %t, want %t:\n%q", colored, test.colored, printed[:40])
			}
		})
	}
}

func TestAcknowledge(t *testing.T) {
	t.Parallel()
	object := detailed()
	object.Status.AfterUpdate = append(object.Status.AfterUpdate, updatev1beta1.RetainedInsight{Insight: updatev1beta1.Insight{UUID: "def"}})
	object.Annotations = map[string]string{updatev1beta1.AcknowledgedAnnotation: "gone,abc"}
	cluster := newFakeCluster(t, object)
	streams := run(t, "acknowledge", "node/x")
	if streams.code != ExitUsage || !strings.Contains(streams.errOut, "upgradejob/NAME") {
		t.Errorf("exit code %d, error %q", streams.code, streams.errOut)
	}
	if got := run(t, "acknowledge", "insight/abc", "--replay", "."); got.code != ExitUsage || !strings.Contains(got.errOut, "dump") {
		t.Errorf("exit code %d, error %q", got.code, got.errOut)
	}
	p := New(Environment{Terminal: &Terminal{}, Streams: genericiooptions.NewTestIOStreamsDiscard()})
	if err := p.acknowledgeInsight(t.Context(), cluster.Cluster, "other"); err == nil || !strings.Contains(err.Error(), "does not need attention") {
		t.Errorf("acknowledging what needs no attention: %v", err)
	}
	if err := p.acknowledgeInsight(t.Context(), cluster.Cluster, "def"); err != nil {
		t.Fatal(err)
	}
	stored := &updatev1beta1.UpdateStatus{}
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, stored); err != nil {
		t.Fatal(err)
	}
	if got := stored.Annotations[updatev1beta1.AcknowledgedAnnotation]; got != "abc,def" {
		t.Errorf("annotation %q, want those that still need attention, and the new one", got)
	}
}
