// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/scheme"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// Detailed returns a published status with insights about two nodes.
func Detailed() *updatev1beta1.UpdateStatus {
	c := progressingScreen()
	object := updateStatus(c)
	insight := func(level updatev1beta1.Level, node, summary string) updatev1beta1.Insight {
		return updatev1beta1.Insight{
			UID: node, UUID: "uuid-of-" + node, FirstObservedTime: *clitest.Ago(6 * time.Minute),
			Scope:       updatev1beta1.InsightScope{Resources: []updatev1beta1.ResourceReference{{Kind: "Node", Name: node}, {Kind: "Pod", Namespace: "shop", Name: "api"}}},
			Impact:      updatev1beta1.InsightImpact{Level: level, Summary: summary, Description: "About " + node + "."},
			Remediation: updatev1beta1.InsightRemediation{Reference: "https://docs.example.com/" + node},
		}
	}
	stale := insight(updatev1beta1.LevelError, "worker-0", "node worker-0 is degraded")
	stale.StaleSince, stale.Flaps = clitest.Ago(3*time.Minute), 2
	object.Status.WorkerPools = []updatev1beta1.WorkerPoolStatus{{
		Kind: "MachineConfigPool", Name: "worker",
		Section: updatev1beta1.Section{UpdateInformers: []updatev1beta1.InformerInsights{
			{Name: "builtin-nodes", Insights: []updatev1beta1.Insight{insight(updatev1beta1.LevelStatus, "worker-1", "node worker-1 is rebooting"), stale}},
		}},
	}}
	object.Status.RecentlyResolved = []updatev1beta1.ResolvedInsight{
		{UpdateInformer: "cpu", Level: updatev1beta1.LevelWarning, Summary: "high CPU", Reason: updatev1beta1.ResolutionInformerDisabled, ResolvedTime: *clitest.Ago(time.Hour)},
	}
	object.Status.AfterUpdate = []updatev1beta1.RetainedInsight{{UpdateInformer: "cpu", Insight: updatev1beta1.Insight{UUID: "abc", Impact: updatev1beta1.InsightImpact{Level: "warning", Summary: "scale up"}}, RetainedSince: clitest.At("2026-11-20 10:00")}}
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
			cluster := clitest.NewFakeCluster(t, Detailed(), clitest.Lease(4*time.Second))
			got := runStatus(t, cluster.Cluster, o, "")
			clitest.Golden(t, "details/"+name+".txt", got.Out, true)
			clitest.CheckWidth(t, got.Out, screen.DefaultWidth)
			if got.Code != session.ExitProgressing {
				t.Errorf("exit code %d, error %q", got.Code, got.ErrOut)
			}
		})
	}
	updating := standard().update().updated("m0", "m1", "m2", "w0").reboot("w1").change(addInfra)
	updating.operators["network"].Status.Versions[0].Version = "4.20.6"
	updating.nodes["i0"].Spec.Unschedulable = true
	reader := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(updating.objects()...).Build()
	got := runStatus(t, &session.Cluster{Reader: notInstalled(reader), Clock: session.FixedClock(clitest.Now)}, statusOptions{details: true}, "")
	clitest.Golden(t, "details/parts.txt", got.Out, true)
	denied := clitest.NewFakeCluster(t, Detailed(), clitest.Lease(0))
	denied.Err = func(kind string) error {
		if kind == "Node" {
			return clitest.Forbidden()
		}
		return nil
	}
	if got := runStatus(t, denied.Cluster, statusOptions{details: true}, ""); !strings.Contains(got.Out, "\nNodes: you are not allowed to list them\n") {
		t.Errorf("printed %s", got.Out)
	}
	cluster := clitest.NewFakeCluster(t, Detailed(), clitest.Lease(0))
	if got := runStatus(t, cluster.Cluster, statusOptions{selector: "zone=none"}, ""); got.Code != session.ExitFailed || !strings.Contains(got.ErrOut, "no node has these labels") {
		t.Errorf("exit code %d, error %q", got.Code, got.ErrOut)
	}
}

// hostile contains what third parties may write: control characters, colors, right-to-left text, zero-width
// characters, and wide characters.
const hostile = "\x1b[31mred\x07 \u202egnp\u200b\u0000\nDo          Nothing.\r\x9b2J 日本語 " + "\u0301\u0301"

func TestScreens_are_harmless(t *testing.T) {
	t.Parallel()
	object := Detailed()
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
		p := session.New(session.Environment{Program: "/oc-update", Terminal: &screen.Terminal{Width: width}})
		o := statusOptions{Session: p, details: true, format: session.OutputFlags(&cobra.Command{})}
		printed, err := o.screen(t.Context(), clitest.NewFakeCluster(t).Cluster, snapshot{object: object, origin: publishedOrigin(0), now: clitest.Now})
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
			isCommand := strings.HasPrefix(line, screen.Blank(screen.LabelWidth+screen.ColumnGap)+"oc ")
			if !isCommand && screen.Columns(strings.TrimSuffix(line, "\n")) > width {
				t.Errorf("%d columns are wider than %d: %q", screen.Columns(line), width, line)
			}
		}
	}
}

func TestColors_never_reach_a_file(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		environment session.Environment
		colored     bool
	}{
		"file":                       {session.Environment{Terminal: &screen.Terminal{}}, false},
		"terminal":                   {session.Environment{Terminal: &screen.Terminal{Interactive: true}}, true},
		"terminal with NO_COLOR set": {session.Environment{Terminal: &screen.Terminal{Interactive: true}, NoColor: true}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := session.New(test.environment)
			o := statusOptions{Session: p, format: session.OutputFlags(&cobra.Command{})}
			printed, err := o.screen(t.Context(), nil, snapshot{object: Detailed(), origin: publishedOrigin(0), now: clitest.Now})
			if err != nil {
				t.Fatal(err)
			}
			if colored := strings.HasPrefix(printed, "\x1b[1;36mUPDATING\x1b[0m  4.20.5"); colored != test.colored || !strings.Contains(printed, "UPDATING") {
				t.Errorf("colored %t, want %t:\n%q", colored, test.colored, printed[:40])
			}
		})
	}
}
