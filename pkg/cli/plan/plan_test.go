// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

const planTarget = "4.20.8"

// planCluster is a fake cluster at 4.20.6 with a controller that analyzes plans immediately.
type planCluster struct {
	*clitest.FakeCluster

	insights []updatev1beta1.Insight
	analyses int
	// silent stops the controller.
	silent bool
}

func newPlanCluster(t *testing.T, insights []updatev1beta1.Insight, objects ...client.Object) *planCluster {
	t.Helper()
	if !slices.ContainsFunc(objects, func(o client.Object) bool { return o.GetName() == session.ControllerLease }) {
		objects = append(objects, clitest.Lease(0))
	}
	pc := &planCluster{FakeCluster: clitest.NewFakeCluster(t, objects...), insights: insights}
	base, ok := pc.Client.(client.WithWatch)
	if !ok {
		t.Fatal("the fake client cannot be wrapped")
	}
	version := &configv1.ClusterVersion{}
	if err := base.Get(t.Context(), clusterstate.VersionKey, version); err != nil {
		t.Fatal(err)
	}
	version.Spec.Channel = "stable-4.20"
	version.Status.AvailableUpdates = []configv1.Release{{Version: planTarget, Image: "image-4.20.8"}}
	if err := base.Update(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	pc.Client = interceptor.NewClient(base, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			if review, is := object.(*authenticationv1.SelfSubjectReview); is {
				review.Status.UserInfo.Username = "ann"
				return nil
			}
			if err := c.Create(ctx, object, opts...); err != nil {
				return err
			}
			return pc.analyze(ctx, c, object)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := c.Patch(ctx, object, patch, opts...); err != nil || len((&client.PatchOptions{}).ApplyOptions(opts).DryRun) > 0 {
				return err
			}
			return pc.analyze(ctx, c, object)
		},
	})
	return pc
}

// analyze analyzes a plan like the controller.
func (pc *planCluster) analyze(ctx context.Context, c client.WithWatch, object client.Object) error {
	plan, is := object.(*updatev1beta1.UpdatePlan)
	if !is || pc.silent {
		return nil
	}
	status := &plan.Status
	status.FromRelease = "4.20.6"
	if token := plan.Annotations[updatev1beta1.RefreshAnnotation]; status.LastRefresh != token {
		pc.analyses++
		status.LastRefresh, status.LastAnalysisTime = token, &metav1.Time{Time: clitest.Now}
	}
	pc.settle(plan)
	return c.Update(ctx, plan)
}

func (pc *planCluster) settle(plan *updatev1beta1.UpdatePlan) {
	updateplan.Arrange(&plan.Status, []updatev1beta1.InformerInsights{{Name: checks.InformerReadiness, Insights: pc.insights}}, func(string) string { return "" }, clitest.Now)
	updateplan.Settle(plan, updateplan.Insights(&plan.Status), updateplan.Analysis{Now: clitest.Now, Current: "4.20.6"})
}

// risk returns an insight that needs acceptance.
func risk(uid string, level updatev1beta1.Level, summary string) updatev1beta1.Insight {
	return updatev1beta1.Insight{
		UID: uid, UUID: fmt.Sprintf("%032x", uid)[:32], FirstObservedTime: metav1.NewTime(clitest.Now.Add(-time.Minute)), Scope: updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane},
		Impact: updatev1beta1.InsightImpact{Level: level, Summary: summary, Description: "A longer text.\nWith a remedy."},
	}
}

var (
	budget = risk("pdb/shop/api", updatev1beta1.LevelWarning, "PodDisruptionBudgets that allow no disruption: shop/api")
	quorum = risk("etcd/EtcdMembersAvailable", updatev1beta1.LevelCritical, "etcd is not healthy: EtcdMembersAvailable")
	known  = risk("risk/Slow", updatev1beta1.LevelWarning, "the update has the known risk Slow")
	note   = risk("alert/a/b", updatev1beta1.LevelInfo, "warning alert b is firing")
)

// passingClock is a clock that advances while the caller waits.
type passingClock struct{ *clocktesting.FakeClock }

// After advances the clock.
func (c passingClock) After(d time.Duration) <-chan time.Time {
	c.Step(d)
	passed := make(chan time.Time, 1)
	passed <- c.Now()
	return passed
}

// do runs part of the program on the cluster.
func (pc *planCluster) do(t *testing.T, run func(*session.Session) error) clitest.Result {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	p := session.New(session.Environment{Program: "/usr/bin/oc-update", Clock: passingClock{clocktesting.NewFakeClock(clitest.Now)}, Streams: streams, Terminal: &screen.Terminal{}})
	err := run(p)
	if exit, ok := errors.AsType[*session.ExitError](err); err != nil && (!ok || exit.Err != nil) {
		fmt.Fprintln(errOut, p.Explain(err))
	}
	return clitest.Result{Code: session.CodeOf(err), Out: out.String(), ErrOut: errOut.String()}
}

func (pc *planCluster) preChecks(t *testing.T, change func(*preChecksOptions)) clitest.Result {
	t.Helper()
	return pc.do(t, func(p *session.Session) error {
		o := &preChecksOptions{ChangeOptions: session.ChangeOptions{Yes: true}, planRequest: planRequest{Session: p, release: planTarget, maxAge: defaultMaxAge, namespace: session.ControllerNamespace}, format: session.OutputFlags(&cobra.Command{})}
		change(o)
		return o.runPreChecks(t.Context(), pc.Cluster)
	})
}

func (pc *planCluster) start(t *testing.T, change func(*startOptions)) clitest.Result {
	t.Helper()
	return pc.do(t, func(p *session.Session) error {
		o := &startOptions{ChangeOptions: session.ChangeOptions{Yes: true}, planRequest: planRequest{Session: p, release: planTarget, maxAge: defaultMaxAge, namespace: session.ControllerNamespace}, preChecks: true}
		change(o)
		return o.runStart(t.Context(), pc.Cluster)
	})
}

func TestPlanScreens(t *testing.T) {
	t.Parallel()
	many := []updatev1beta1.Insight{quorum, budget, known, note, risk("operator/dns/OperatorDegraded", "error", "cluster operators degraded")}
	unanalyzed := func(p *updatev1beta1.UpdatePlan) { p.Status.LastAnalysisTime = nil }
	accepted := updatev1beta1.AcceptedInsight{
		UpdateInformer: checks.InformerReadiness, UID: budget.UID, UUID: budget.UUID, Accepted: true, AcceptedBy: "ann", Reason: "the shop is closed",
		AcceptedTime: &metav1.Time{Time: clitest.Now},
	}
	for name, tc := range map[string]struct {
		insights []updatev1beta1.Insight
		accepted []updatev1beta1.AcceptedInsight
		change   func(*updatev1beta1.UpdatePlan)
		details  bool
		source   string
		replay   bool
		code     session.ExitCode
	}{
		"ready":                    {code: session.ExitDone},
		"accepted":                 {insights: []updatev1beta1.Insight{budget}, accepted: []updatev1beta1.AcceptedInsight{accepted}, details: true, code: session.ExitDone},
		"not-ready":                {insights: many, accepted: []updatev1beta1.AcceptedInsight{accepted}, code: session.ExitActionRequired},
		"details":                  {insights: many, details: true, code: session.ExitActionRequired},
		"without-control":          {insights: []updatev1beta1.Insight{budget}, source: "live reads", code: session.ExitActionRequired},
		"without-control-or-risks": {source: "live reads", change: unanalyzed, code: session.ExitUnknown},
		"without-control-workers": {source: "live reads", change: func(p *updatev1beta1.UpdatePlan) {
			unanalyzed(p)
			p.Spec.TargetRelease, p.Name = "4.20.6", "update-plan-4.20.6"
		}, code: session.ExitUnknown},
		"dump-without-risks": {source: "must-gather", replay: true, change: unanalyzed, code: session.ExitUnknown},
		"incomplete":         {change: unanalyzed, code: session.ExitUnknown},
		"old": {change: func(p *updatev1beta1.UpdatePlan) {
			p.Status.LastAnalysisTime = &metav1.Time{Time: clitest.Now.Add(-2 * time.Hour)}
		}, code: session.ExitActionRequired},
		"ahead": {change: func(p *updatev1beta1.UpdatePlan) {
			p.Status.LastAnalysisTime = &metav1.Time{Time: clitest.Now.Add(5 * time.Minute)}
		}, code: session.ExitActionRequired},
		"being-installed": {insights: []updatev1beta1.Insight{budget}, change: func(p *updatev1beta1.UpdatePlan) {
			p.Spec.TargetRelease, p.Name, p.Status.FromRelease = "4.20.6", "update-plan-4.20.6", "4.20.6"
		}, code: session.ExitActionRequired},
		"no-update": {change: func(p *updatev1beta1.UpdatePlan) { p.Spec.TargetRelease, p.Name = "4.20.6", "update-plan-4.20.6" }, code: session.ExitActionRequired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pc := &planCluster{insights: tc.insights}
			plan := &updatev1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: "update-plan-" + planTarget}, Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: planTarget, AcceptedInsights: tc.accepted}}
			plan.Status.FromRelease, plan.Status.LastAnalysisTime = "4.20.6", &metav1.Time{Time: clitest.Now.Add(-12 * time.Second)}
			if tc.change != nil {
				tc.change(plan)
			}
			pc.settle(plan)
			if name == "being-installed" {
				updateplan.Settle(plan, updateplan.Insights(&plan.Status), updateplan.Analysis{Now: clitest.Now, Current: "4.20.6", NotAnUpdate: "the cluster is being updated to 4.20.6"})
			}
			if name == "ahead" {
				updateplan.Settle(plan, nil, updateplan.Analysis{Now: plan.Status.LastAnalysisTime.Time, Current: "4.20.6"})
			}
			if name == "no-update" {
				updateplan.Settle(plan, nil, updateplan.Analysis{Now: clitest.Now, Current: "4.20.6", NotAnUpdate: "the cluster is at 4.20.6"})
			}
			if code := planVerdict(plan, clitest.Now); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			for _, width := range []int{60, 80, 200} {
				s := &planScreen{Layout: screen.Layout{Width: width}, plan: plan, now: clitest.Now, name: "oc update", details: tc.details, source: tc.source, replay: tc.replay}
				printed := s.render(tc.code)
				clitest.Golden(t, fmt.Sprintf("plans/%s-%d.txt", name, width), printed, true)
				clitest.CheckWidth(t, printed, width)
			}
		})
	}
}

// A printed command accepts the intended insight, and the shell parses it as one command.
func TestPlanScreens_print_a_command_that_accepts(t *testing.T) {
	t.Parallel()
	const uuid = "0123456789abcdef0123456789abcdef"
	for uid, byUID := range map[string]bool{
		"pdb/shop/api": true, "a.b:c@d+e_f-G/9": true, "shared": false,
		"a;reboot": false, "a|b": false, "a&b": false, "a<b": false, "a>b": false, "a(b": false, "a*": false, "a#b": false, "#a": false,
		"--help": false, "~root": false, "a,b": false, "a b": false, "a$b": false, "a`b": false, `a"b`: false, "a'b": false, `a\b`: false, "a\nb": false, "": false,
	} {
		t.Run(uid, func(t *testing.T) {
			t.Parallel()
			first, other := risk(uid, updatev1beta1.LevelCritical, "x"), risk("shared", updatev1beta1.LevelWarning, "y")
			first.UUID = uuid
			pc := &planCluster{insights: []updatev1beta1.Insight{first, other}}
			plan := &updatev1beta1.UpdatePlan{Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: planTarget}}
			pc.settle(plan)
			want := uuid
			if byUID {
				want = uid
			}
			s := &planScreen{Layout: screen.Layout{Width: 200}, plan: plan, now: clitest.Now, name: "oc update"}
			if got := s.render(session.ExitActionRequired); !strings.Contains(got, " --accept "+want+" --reason WHY\n") {
				t.Errorf("printed %s, want --accept %s", got, want)
			}
		})
	}
}

// Commands in findings are printed on a single line at any width and use the client that the user ran.
func TestPlanScreens_print_whole_commands(t *testing.T) {
	t.Parallel()
	const target, gate = "4.21.2", "ack-4.20-kube-1.34-api-removals-in-4.21"
	version := clusterstate.Version{Installed: "4.20.6"}
	facts := checks.PlanFacts{
		Gates:             []clusterstate.AdminGate{{Name: gate, Minor: "4.20", Description: "Read the notes."}},
		APIs:              []clusterstate.DeprecatedAPI{{Resource: "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", RemovedIn: "1.34", Requests: 1}},
		Etcd:              []clusterstate.EtcdCondition{{Type: clusterstate.EtcdMembersAvailable, Condition: clusterstate.Condition{Status: "False"}}},
		OptionalOperators: []clusterstate.ClusterServiceVersion{{Namespace: "openshift-storage", Name: "odf-operator.v4.20.1", Phase: "Failed"}},
	}
	pc := &planCluster{}
	for _, finding := range checks.Readiness(checks.Facts{Now: clitest.Now, Version: version}.With(facts), target) {
		pc.insights = append(pc.insights, insight.FromFinding(checks.InformerReadiness, finding, clitest.Now))
	}
	stranger := risk("stranger", updatev1beta1.LevelWarning, "x")
	stranger.Impact.Description = "Run this: oc delete namespace shop " + strings.Repeat("now ", 20)
	plan := &updatev1beta1.UpdatePlan{Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: target}}
	updateplan.Arrange(&plan.Status, []updatev1beta1.InformerInsights{
		{Name: checks.InformerReadiness, Insights: pc.insights}, {Name: "stranger", Insights: []updatev1beta1.Insight{stranger}},
	}, func(string) string { return "" }, clitest.Now)
	for _, width := range []int{60, 80, 200} {
		for name, client := range map[string]string{"oc update": "oc", "kubectl update": "kubectl"} {
			s := &planScreen{Layout: screen.Layout{Width: width}, plan: plan, now: clitest.Now, name: name, details: true}
			printed := s.render(session.ExitActionRequired)
			for _, command := range []string{
				`-n openshift-config patch configmap admin-acks --type=merge --patch '{"data":{"` + gate + `":"true"}}'`,
				"get apirequestcount flowschemas.v1beta3.flowcontrol.apiserver.k8s.io -o yaml", "-n openshift-etcd get pods -o wide",
				"-n openshift-storage describe clusterserviceversion odf-operator.v4.20.1",
			} {
				if line := "\n" + screen.Blank(screen.LabelWidth+screen.ColumnGap) + client + " " + command + "\n"; !strings.Contains(printed, line) {
					t.Errorf("width %d: %q is not printed as a line:\n%s", width, line, printed)
				}
			}
			if strings.Contains(printed, "  oc delete") {
				t.Errorf("what a third party reports is printed as a command:\n%s", printed)
			}
		}
	}
}

func TestPreChecks_create_and_refresh_the_plan(t *testing.T) {
	t.Parallel()
	pc := newPlanCluster(t, nil)
	for i, tc := range []struct {
		change   func(*preChecksOptions)
		analyses int
	}{
		{func(*preChecksOptions) {}, 1},
		{func(*preChecksOptions) {}, 1}, // recent enough
		{func(o *preChecksOptions) { o.maxAge = 0 }, 1},
		{func(o *preChecksOptions) { o.refreshInformers = true }, 1},
	} {
		got := pc.preChecks(t, tc.change)
		if got.Code != session.ExitDone || !strings.HasPrefix(got.Out, "READY") {
			t.Errorf("%d: %+v", i, got)
		}
	}
	if pc.analyses != 1 { // the fake clock does not advance, so the token stays the same
		t.Errorf("%d analyses", pc.analyses)
	}
	plan := &updatev1beta1.UpdatePlan{}
	if err := pc.Get(t.Context(), client.ObjectKey{Name: "update-plan-" + planTarget}, plan); err != nil {
		t.Fatal(err)
	}
	if plan.Annotations[updatev1beta1.RefreshInformersAnnotation] == "" {
		t.Error("informers were not asked to update themselves")
	}
}

// TestPreChecks_print_the_plan prints the plan as an API object and exits with the code of its verdict.
func TestPreChecks_print_the_plan(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "yaml"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			pc := newPlanCluster(t, []updatev1beta1.Insight{risk("slow", updatev1beta1.LevelWarning, "The disk is slow")})
			got := pc.preChecks(t, func(o *preChecksOptions) { o.format.Format = format })
			var plan updatev1beta1.UpdatePlan
			if err := yaml.UnmarshalStrict([]byte(got.Out), &plan); err != nil {
				t.Fatalf("%v:\n%s", err, got.Out)
			}
			text := pc.preChecks(t, func(*preChecksOptions) {})
			if plan.Kind != "UpdatePlan" || plan.Spec.TargetRelease != planTarget || !strings.Contains(got.Out, "The disk is slow") || got.Code != text.Code || got.ErrOut != "" {
				t.Errorf("exit code %d, %d as text, error %q:\n%s", got.Code, text.Code, got.ErrOut, got.Out)
			}
			if (format == "json") != strings.HasPrefix(got.Out, "{") {
				t.Errorf("this is no %s:\n%s", format, got.Out)
			}
		})
	}
}

func TestPreChecks_accept(t *testing.T) {
	t.Parallel()
	twin := risk(budget.UID, updatev1beta1.LevelWarning, "another pool")
	twin.UUID = "ffffffffffffffffffffffffffffffff"
	for name, tc := range map[string]struct {
		insights []updatev1beta1.Insight
		accept   []string
		reason   string
		code     session.ExitCode
		says     string
	}{
		"by uid":                  {[]updatev1beta1.Insight{budget}, []string{budget.UID}, "closed", session.ExitDone, "READY"},
		"by uuid":                 {[]updatev1beta1.Insight{budget}, []string{budget.UUID}, "", session.ExitDone, "READY"},
		"by informer and uid":     {[]updatev1beta1.Insight{budget}, []string{"builtin-readiness/" + budget.UID}, "", session.ExitDone, "READY"},
		"one of two":              {[]updatev1beta1.Insight{budget, known}, []string{budget.UID}, "", session.ExitActionRequired, "1 of 2 risks are not accepted"},
		"what is not there":       {[]updatev1beta1.Insight{budget}, []string{"pdb/x/y"}, "", session.ExitFailed, `no risk has the uid or uuid "pdb/x/y"`},
		"what needs none":         {[]updatev1beta1.Insight{note}, []string{note.UID}, "", session.ExitFailed, "no risk has"},
		"ambiguous":               {[]updatev1beta1.Insight{budget, twin}, []string{budget.UID}, "", session.ExitFailed, "2 risks have the uid"},
		"ambiguous by uuid":       {[]updatev1beta1.Insight{budget, twin}, []string{twin.UUID}, "", session.ExitActionRequired, "1 of 2 risks are"},
		"critical without reason": {[]updatev1beta1.Insight{quorum}, []string{quorum.UID}, "", session.ExitUsage, "--reason"},
		"critical":                {[]updatev1beta1.Insight{quorum}, []string{quorum.UID}, "restored", session.ExitDone, "READY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pc := newPlanCluster(t, tc.insights)
			got := pc.preChecks(t, func(o *preChecksOptions) { o.accept, o.reason = tc.accept, tc.reason })
			if got.Code != tc.code || !strings.Contains(got.Out+got.ErrOut, tc.says) || strings.Count(got.ErrOut, "\n") > 1 {
				t.Errorf("got %+v, want %d: %s", got, tc.code, tc.says)
			}
			plan := &updatev1beta1.UpdatePlan{}
			if err := pc.Get(t.Context(), client.ObjectKey{Name: "update-plan-" + planTarget}, plan); err != nil {
				t.Fatal(err)
			}
			for _, e := range plan.Spec.AcceptedInsights {
				if e.AcceptedBy != "ann" || e.UUID == "" || !e.AcceptedTime.Time.Equal(clitest.Now) || e.Reason != tc.reason {
					t.Errorf("accepted %+v", e)
				}
			}
			if (len(plan.Spec.AcceptedInsights) > 0) != (tc.code == session.ExitDone || tc.code == session.ExitActionRequired) {
				t.Errorf("accepted %+v", plan.Spec.AcceptedInsights)
			}
		})
	}
}

// The clock of the cluster was set back since the analysis.
func TestPreChecks_repeat_an_analysis_from_the_future(t *testing.T) {
	t.Parallel()
	pc := newPlanCluster(t, nil)
	pc.preChecks(t, func(*preChecksOptions) {})
	plan := &updatev1beta1.UpdatePlan{}
	if err := pc.Get(t.Context(), client.ObjectKey{Name: "update-plan-" + planTarget}, plan); err != nil {
		t.Fatal(err)
	}
	plan.Annotations[updatev1beta1.RefreshAnnotation], plan.Status.LastRefresh = "earlier", "earlier"
	plan.Status.LastAnalysisTime = clitest.In(2 * time.Hour)
	if err := pc.Client.Update(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	if got := pc.preChecks(t, func(*preChecksOptions) {}); got.Code != session.ExitDone || pc.analyses != 2 {
		t.Errorf("%d analyses, got %+v", pc.analyses, got)
	}
}

// The risk has just been observed, and the clock of this computer is behind the one of the cluster.
func TestPreChecks_accept_with_a_clock_that_is_behind(t *testing.T) {
	t.Parallel()
	fresh := budget
	fresh.FirstObservedTime = metav1.NewTime(clitest.Now.Add(30 * time.Second))
	pc := newPlanCluster(t, []updatev1beta1.Insight{fresh})
	if got := pc.preChecks(t, func(o *preChecksOptions) { o.accept = []string{budget.UID} }); got.Code != session.ExitDone {
		t.Errorf("got %+v", got)
	}
}

// A repeated acceptance replaces the earlier one and is stored even if nothing else changes.
func TestPreChecks_accept_twice(t *testing.T) {
	t.Parallel()
	pc := newPlanCluster(t, []updatev1beta1.Insight{budget, quorum})
	entries := func() []string {
		t.Helper()
		plan := &updatev1beta1.UpdatePlan{}
		if err := pc.Get(t.Context(), client.ObjectKey{Name: "update-plan-" + planTarget}, plan); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range plan.Spec.AcceptedInsights {
			got = append(got, fmt.Sprintf("%s %s %t", e.UID, e.Reason, e.Accepted))
		}
		return got
	}
	for _, step := range []struct {
		accept []string
		reason string
		code   session.ExitCode
		want   []string
	}{
		{[]string{budget.UID}, "closed", session.ExitActionRequired, []string{budget.UID + " closed true"}},
		{[]string{budget.UID}, "closed", session.ExitActionRequired, []string{budget.UID + " closed true"}},
		{[]string{budget.UUID}, "still closed", session.ExitActionRequired, []string{budget.UID + " still closed true"}},
		{[]string{quorum.UID, quorum.UID, quorum.UUID}, "restored", session.ExitDone, []string{budget.UID + " still closed true", quorum.UID + " restored true"}},
	} {
		got := pc.preChecks(t, func(o *preChecksOptions) { o.accept, o.reason = step.accept, step.reason })
		if got.Code != step.code {
			t.Errorf("accepting %v: %+v", step.accept, got)
		}
		if diff := cmp.Diff(step.want, entries()); diff != "" {
			t.Errorf("accepting %v (-want +got):\n%s", step.accept, diff)
		}
	}
}

func TestPreChecks_without_the_controller(t *testing.T) {
	t.Parallel()
	silent := newPlanCluster(t, nil)
	silent.silent = true
	if got := silent.preChecks(t, func(*preChecksOptions) {}); got.Code != session.ExitUnknown || !strings.Contains(got.Out, "has not begun the analysis") {
		t.Errorf("a controller that is silent: %+v", got)
	}
	absent := newPlanCluster(t, nil)
	absent.Err = func(kind string) error {
		if kind == "UpdatePlan" {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "config.openshift.io", Kind: kind}}
		}
		return nil
	}
	if got := silent.start(t, func(*startOptions) {}); got.Code != session.ExitActionRequired || !strings.Contains(got.ErrOut, "not started: ") {
		t.Errorf("start with a controller that is silent: %+v", got)
	}
	got := absent.preChecks(t, func(*preChecksOptions) {})
	if got.Code != session.ExitActionRequired || !strings.Contains(got.Out, "is not installed") || !strings.Contains(got.Out, "unreadable/etcd") || strings.Contains(got.Out, "--accept") {
		t.Errorf("no controller: %+v", got)
	}
	got = absent.preChecks(t, func(o *preChecksOptions) { o.release = "4.20.6" })
	if got.Code != session.ExitActionRequired || !strings.Contains(got.Out, "NOT READY  4.20.6. The cluster is at 4.20.6.") || strings.Contains(got.Out, "unreadable/") {
		t.Errorf("no controller, and the release is installed: %+v", got)
	}
	if got := absent.start(t, func(*startOptions) {}); got.Code != session.ExitActionRequired || !strings.Contains(got.ErrOut, "--pre-checks=false") {
		t.Errorf("start without a controller: %+v", got)
	}
	if got := absent.preChecks(t, func(o *preChecksOptions) { o.accept = []string{"x"} }); got.Code != session.ExitFailed || strings.Count(got.ErrOut, "\n") != 1 {
		t.Errorf("accept without a controller: %+v", got)
	}
}

// lockHolder returns the finding about an upgrade to a release that holds the upgrade lock.
func lockHolder(t *testing.T, release string) updatev1beta1.Insight {
	t.Helper()
	facts := checks.PlanFacts{Holder: lock.Holder{Kind: "UpgradeJob", Namespace: "ops", Name: "weekly", UID: "1"}, HolderTarget: release}
	for _, finding := range checks.Readiness(checks.Facts{Now: clitest.Now}.With(facts), planTarget) {
		if strings.HasPrefix(finding.ID, "lock/") {
			return insight.FromFinding(checks.InformerReadiness, finding, clitest.Now)
		}
	}
	t.Fatal("nothing is reported")
	return updatev1beta1.Insight{}
}

// desired returns spec.desiredUpdate and the annotation of the ClusterVersion.
func (pc *planCluster) desired(t *testing.T) (*configv1.Update, string) {
	t.Helper()
	version := &configv1.ClusterVersion{}
	if err := pc.Get(t.Context(), clusterstate.VersionKey, version); err != nil {
		t.Fatal(err)
	}
	return version.Spec.DesiredUpdate, version.Annotations[updatev1beta1.BypassAnnotation]
}

func TestStart(t *testing.T) {
	t.Parallel()
	held, ours := lockHolder(t, "4.20.7"), lockHolder(t, planTarget)
	for name, tc := range map[string]struct {
		insights []updatev1beta1.Insight
		change   func(*startOptions)
		code     session.ExitCode
		says     string
		bypassed string
	}{
		"no risk":          {nil, func(*startOptions) {}, session.ExitDone, "Requested the update from 4.20.6 to 4.20.8", ""},
		"risks":            {[]updatev1beta1.Insight{budget}, func(*startOptions) {}, session.ExitActionRequired, "not started: not accepted: builtin-readiness pdb/shop/api", ""},
		"lock held":        {[]updatev1beta1.Insight{held}, func(*startOptions) {}, session.ExitActionRequired, "not started: not accepted: builtin-readiness lock/UpgradeJob ops/weekly; see \"oc update pre-checks --version 4.20.8\"", ""},
		"lock of its own":  {[]updatev1beta1.Insight{ours}, func(*startOptions) {}, session.ExitDone, "Requested", ""},
		"bypassed":         {[]updatev1beta1.Insight{budget}, func(o *startOptions) { o.preChecks = false }, session.ExitDone, "Requested", planTarget},
		"not offered":      {nil, func(o *startOptions) { o.release, o.preChecks = "4.20.9", false }, session.ExitActionRequired, `channel "stable-4.20" does not offer 4.20.9`, ""},
		"older":            {nil, func(o *startOptions) { o.release, o.preChecks = "4.20.5", false }, session.ExitActionRequired, "4.20.5 is not newer", ""},
		"installed":        {nil, func(o *startOptions) { o.release, o.preChecks = "4.20.6", false }, session.ExitActionRequired, "4.20.6 is installed already", ""},
		"controller alone": {nil, func(o *startOptions) { o.pausePools = true }, session.ExitDone, "Paused machine config pool worker.\nRequested", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pc := newPlanCluster(t, tc.insights)
			got := pc.start(t, tc.change)
			if got.Code != tc.code || !strings.Contains(got.Out+got.ErrOut, tc.says) || strings.Count(got.ErrOut, "\n") > 1 {
				t.Errorf("got %+v, want %d: %s", got, tc.code, tc.says)
			}
			update, annotation := pc.desired(t)
			if (update != nil) != (tc.code == session.ExitDone) || update != nil && (update.Version != planTarget || update.Image != "image-4.20.8") || annotation != tc.bypassed {
				t.Errorf("desired %+v, bypassed %q", update, annotation)
			}
			var events corev1.EventList
			if err := pc.List(t.Context(), &events); err != nil {
				t.Fatal(err)
			}
			if (len(events.Items) == 1 && strings.Contains(events.Items[0].Message, "ann started")) != (tc.bypassed != "") {
				t.Errorf("events %+v", events.Items)
			}
		})
	}
}

// If the control plane update is denied, no pool stays paused. If it fails later, the error names the pools
// that stay paused.
func TestStart_pauses_no_pool_for_a_request_that_is_denied(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fails  func(client.Object, *client.PatchOptions) bool
		paused string
	}{
		"denied":      {func(o client.Object, _ *client.PatchOptions) bool { return o.GetName() == "version" }, ""},
		"second pool": {func(o client.Object, _ *client.PatchOptions) bool { return o.GetName() == "worker" }, "infra"},
		"then changed": {func(o client.Object, p *client.PatchOptions) bool {
			return o.GetName() == "version" && len(p.DryRun) == 0
		}, "infra,worker"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paused := clitest.HealthyPool("before")
			paused.Spec.Paused = true
			pc := newPlanCluster(t, nil, clitest.HealthyPool("infra"), paused)
			base, ok := pc.Client.(client.WithWatch)
			if !ok {
				t.Fatal("the fake client cannot be wrapped")
			}
			pc.Client = interceptor.NewClient(base, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if tc.fails(object, (&client.PatchOptions{}).ApplyOptions(opts)) {
						return clitest.Forbidden()
					}
					return c.Patch(ctx, object, patch, opts...)
				},
			})
			got := pc.start(t, func(o *startOptions) { o.pausePools = true })
			if got.Code != session.ExitFailed || strings.Count(got.ErrOut, "\n") != 1 {
				t.Errorf("%+v", got)
			}
			if says := "oc update worker-nodes start --pool " + tc.paused; strings.Contains(got.ErrOut, says) != (tc.paused != "") {
				t.Errorf("error %q, want %q", got.ErrOut, says)
			}
			var pools mcfgv1.MachineConfigPoolList
			if err := pc.List(t.Context(), &pools); err != nil {
				t.Fatal(err)
			}
			for _, pool := range pools.Items {
				if want := pool.Name == "before" || slices.Contains(strings.Split(tc.paused, ","), pool.Name); pool.Spec.Paused != want {
					t.Errorf("pool %s: paused %t, want %t", pool.Name, pool.Spec.Paused, want)
				}
			}
			if update, _ := pc.desired(t); update != nil {
				t.Errorf("desired %+v", update)
			}
		})
	}
}

// denied returns the error of a request that the start gate denies.
func denied() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterversions"}, "version",
		errors.New("ValidatingAdmissionPolicy 'update-start-gate' with binding 'update-start-gate' denied request: its risks are not accepted"))
}

// The start gate allows an update shortly after its plan does. If it keeps denying the request, or if the
// user bypasses the plan, the request is refused.
func TestStart_through_the_gate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		denials int
		change  func(*startOptions)
		code    session.ExitCode
		asked   int
	}{
		"open":              {0, func(*startOptions) {}, session.ExitDone, 1},
		"opens":             {3, func(*startOptions) {}, session.ExitDone, 4},
		"stays closed":      {100, func(*startOptions) {}, session.ExitActionRequired, 11},
		"is bypassed":       {0, func(o *startOptions) { o.preChecks = false }, session.ExitDone, 1},
		"bypass is denied":  {100, func(o *startOptions) { o.preChecks = false }, session.ExitActionRequired, 1},
		"control plane":     {2, func(o *startOptions) { o.pausePools = true }, session.ExitDone, 4},
		"closed, no pauses": {100, func(o *startOptions) { o.pausePools = true }, session.ExitActionRequired, 11},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pc := newPlanCluster(t, nil)
			base, ok := pc.Client.(client.WithWatch)
			if !ok {
				t.Fatal("the fake client cannot be wrapped")
			}
			asked := 0
			pc.Client = interceptor.NewClient(base, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if _, is := object.(*configv1.ClusterVersion); is {
						if asked++; asked <= tc.denials {
							return denied()
						}
					}
					return c.Patch(ctx, object, patch, opts...)
				},
			})
			got := pc.start(t, tc.change)
			if got.Code != tc.code || asked != tc.asked {
				t.Errorf("%d requests, want %d, exit code %d, want %d: %s", asked, tc.asked, got.Code, tc.code, got.ErrOut)
			}
			if refused := tc.code == session.ExitActionRequired; strings.Contains(got.ErrOut, "not started: ") != refused || strings.Contains(got.ErrOut, "ClusterRole update-bypasser") != refused {
				t.Errorf("error %q", got.ErrOut)
			}
			if strings.Contains(got.Out, "Paused") != (name == "control plane") {
				t.Errorf("output %q", got.Out)
			}
		})
	}
}

func TestStart_accepts_known_risks(t *testing.T) {
	t.Parallel()
	pc := newPlanCluster(t, []updatev1beta1.Insight{known, budget})
	version := &configv1.ClusterVersion{}
	if err := pc.Get(t.Context(), clusterstate.VersionKey, version); err != nil {
		t.Fatal(err)
	}
	version.Spec.DesiredUpdate = &configv1.Update{Version: "4.20.6", Image: "x", Force: true, AcceptRisks: []configv1.AcceptRisk{{Name: "Other"}, {Name: "Slow"}}}
	if err := pc.Client.Update(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	if got := pc.preChecks(t, func(o *preChecksOptions) { o.accept = []string{known.UID, budget.UID} }); got.Code != session.ExitDone {
		t.Fatalf("%+v", got)
	}
	if got := pc.start(t, func(*startOptions) {}); got.Code != session.ExitDone {
		t.Fatalf("%+v", got)
	}
	want := &configv1.Update{Version: planTarget, Image: "image-4.20.8", AcceptRisks: []configv1.AcceptRisk{{Name: "Other"}, {Name: "Slow"}}}
	update, _ := pc.desired(t)
	if diff := cmp.Diff(want, update); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWorkerNodesStart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pools    []string
		updating bool
		code     session.ExitCode
		left     string
	}{
		"all but those of the operator": {nil, false, session.ExitDone, "delayed"},
		"one":                           {[]string{"infra"}, false, session.ExitDone, "delayed worker"},
		"one of the operator":           {[]string{"delayed"}, false, session.ExitDone, "infra worker"},
		"unknown":                       {[]string{"x"}, false, session.ExitUsage, "delayed infra worker"},
		"master":                        {[]string{"master"}, false, session.ExitUsage, "delayed infra worker"},
		"during an update":              {nil, true, session.ExitActionRequired, "delayed infra worker"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			infra, delayed := clitest.HealthyPool("infra"), clitest.HealthyPool("delayed")
			infra.Spec.Paused, delayed.Spec.Paused = true, true
			delayed.Annotations = map[string]string{clusterstate.AnnotationPausedBy: clusterstate.PoolMark{
				OwnerUID: "job", Attempt: 1, ReleaseAfter: clitest.Now, ReleaseBefore: clitest.Now.Add(time.Hour),
			}.String()}
			pc := newPlanCluster(t, nil, infra, delayed)
			if got := pc.start(t, func(o *startOptions) { o.pausePools = true }); got.Code != session.ExitDone || pausedPools(t, pc) != "delayed infra worker" {
				t.Fatalf("%+v, paused %s", got, pausedPools(t, pc))
			}
			if tc.updating {
				version := &configv1.ClusterVersion{}
				if err := pc.Get(t.Context(), clusterstate.VersionKey, version); err != nil {
					t.Fatal(err)
				}
				version.Status.History = append([]configv1.UpdateHistory{{Version: planTarget, State: configv1.PartialUpdate}}, version.Status.History...)
				if err := pc.Client.Update(t.Context(), version); err != nil {
					t.Fatal(err)
				}
			}
			got := pc.do(t, func(p *session.Session) error {
				return (&workersOptions{planRequest: planRequest{Session: p}, pools: tc.pools, ChangeOptions: session.ChangeOptions{Yes: true}}).startWorkers(t.Context(), pc.Cluster)
			})
			if got.Code != tc.code || pausedPools(t, pc) != tc.left {
				t.Errorf("%+v, paused %s, want %s", got, pausedPools(t, pc), tc.left)
			}
			if says := "oc update worker-nodes start --pool delayed\n"; strings.HasSuffix(got.Out, says) != (tc.pools == nil && !tc.updating) {
				t.Errorf("printed %q, and %q", got.Out, says)
			}
			if tc.code != session.ExitDone {
				return
			}
			got = pc.do(t, func(p *session.Session) error {
				return (&workersOptions{planRequest: planRequest{Session: p}, pools: tc.pools, ChangeOptions: session.ChangeOptions{Yes: true}}).startWorkers(t.Context(), pc.Cluster)
			})
			if says := "No machine config pool of worker nodes is paused."; got.Code != session.ExitDone || strings.Contains(got.Out, says) {
				t.Errorf("again: %+v, although %s are paused", got, tc.left)
			}
		})
	}
}

// pausedPools returns the names of the paused pools, separated by spaces.
func pausedPools(t *testing.T, pc *planCluster) string {
	t.Helper()
	var pools mcfgv1.MachineConfigPoolList
	if err := pc.List(t.Context(), &pools); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range pools.Items {
		if pools.Items[i].Spec.Paused {
			names = append(names, pools.Items[i].Name)
		}
	}
	return strings.Join(names, " ")
}

// Users must confirm changes, and a dry run changes nothing.
func TestPlanCommands_with_consent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options session.ChangeOptions
		code    session.ExitCode
		says    string
	}{
		"declined": {session.ChangeOptions{}, session.ExitFailed, "you did not agree"},
		"dry run":  {session.ChangeOptions{DryRun: true}, session.ExitDone, session.DryRunNote},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			infra := clitest.HealthyPool("infra")
			infra.Spec.Paused = true
			pc := newPlanCluster(t, []updatev1beta1.Insight{known}, infra)
			for command, got := range map[string]clitest.Result{
				"start":               pc.start(t, func(o *startOptions) { o.ChangeOptions, o.preChecks = tc.options, false }),
				"control-plane start": pc.start(t, func(o *startOptions) { o.ChangeOptions, o.preChecks, o.pausePools = tc.options, false, true }),
				"worker-nodes start": pc.do(t, func(p *session.Session) error {
					return (&workersOptions{planRequest: planRequest{Session: p}, ChangeOptions: tc.options}).startWorkers(t.Context(), pc.Cluster)
				}),
				"pre-checks --accept": pc.preChecks(t, func(o *preChecksOptions) { o.ChangeOptions, o.accept = tc.options, []string{acceptAll} }),
			} {
				code := tc.code
				if command == "pre-checks --accept" && code == session.ExitDone {
					code = session.ExitActionRequired // the risk is not accepted
				}
				if got.Code != code || !strings.Contains(got.Out+got.ErrOut, tc.says) {
					t.Errorf("%s: %+v, want %d and %q", command, got, code, tc.says)
				}
			}
			if update, _ := pc.desired(t); update != nil || pausedPools(t, pc) != "infra" {
				t.Errorf("desired %+v, paused %s", update, pausedPools(t, pc))
			}
			var plans updatev1beta1.UpdatePlanList
			if err := pc.List(t.Context(), &plans); err != nil || len(plans.Items) != 1 || len(plans.Items[0].Spec.AcceptedInsights) > 0 {
				t.Errorf("plans %+v, %v", plans.Items, err)
			}
		})
	}
}

func TestPlanCommandLines(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"pre-checks":                                       "--version",
		"pre-checks --version latest":                      "--version",
		"pre-checks --version 4.20.8 --version latest":     "--version",
		"pre-checks --version 4.1.0,4.2.0 --accept x -y":   "--version",
		"pre-checks --version 4.20.8 --reason x":           "--accept",
		"pre-checks --version 4.20.8 -o foo":               "json",
		"start":                                            "--to",
		"start --to-latest --to 4.20.8":                    "--to-latest",
		"start --to-image quay.io/a:4.20.8":                "--to-image",
		"control-plane start --to x":                       "--to",
		"start --to 4.20.8 --replay .":                     "--replay",
		"worker-nodes start --replay .":                    "--replay",
		"start 4.20.8":                                     "4.20.8",
		"pre-checks --version 4.1.0 --accept x --replay .": "--replay",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			if got := run(t, strings.Fields(args)...); got.Code != session.ExitUsage || !strings.Contains(got.ErrOut, want) || strings.Count(got.ErrOut, "\n") != 1 {
				t.Errorf("%+v, want a line about %s", got, want)
			}
		})
	}
}

// If the controller is not running, nothing is written or awaited.
func TestPreChecks_look_for_life(t *testing.T) {
	t.Parallel()
	for name, age := range map[string]time.Duration{"renewed 61s ago": 61 * time.Second, "renewed an hour ago": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pc := newPlanCluster(t, nil, clitest.Lease(age))
			for command, got := range map[string]clitest.Result{
				"pre-checks": pc.preChecks(t, func(o *preChecksOptions) { o.wait = 10 * time.Minute }),
				"start":      pc.start(t, func(o *startOptions) { o.wait = 10 * time.Minute }),
			} {
				if got.Code != session.ExitUnknown || !strings.Contains(got.ErrOut, "no sign of life") || !strings.Contains(got.ErrOut, "oc -n managed-upgrade-operator get pods") {
					t.Errorf("%s: %+v", command, got)
				}
			}
			var plans updatev1beta1.UpdatePlanList
			if err := pc.List(t.Context(), &plans); err != nil || len(plans.Items) > 0 {
				t.Errorf("%d plans, %v", len(plans.Items), err)
			}
		})
	}
}

// If the controller stops, so does the wait. Until then, a line is printed every ten seconds.
func TestPreChecks_end_their_wait(t *testing.T) {
	t.Parallel()
	pc := newPlanCluster(t, nil)
	pc.silent = true
	got := pc.preChecks(t, func(o *preChecksOptions) { o.wait = 10 * time.Minute })
	if got.Code != session.ExitUnknown || !strings.Contains(got.ErrOut, "no sign of life for 62s") {
		t.Errorf("%+v", got)
	}
	if lines := strings.Count(got.ErrOut, "waiting for the analysis of UpdatePlan update-plan-4.20.8"); lines != 6 {
		t.Errorf("%d lines:\n%s", lines, got.ErrOut)
	}
}

// The installed release is refused without an analysis.
func TestStart_of_the_installed_release(t *testing.T) {
	t.Parallel()
	pc := newPlanCluster(t, nil)
	got := pc.start(t, func(o *startOptions) { o.release = "4.20.6" })
	if got.Code != session.ExitActionRequired || !strings.Contains(got.ErrOut, "4.20.6 is installed already") || pc.analyses > 0 {
		t.Errorf("%+v after %d analyses", got, pc.analyses)
	}
}

// Pools that the control plane waits for are not paused, whatever their names.
func TestControl_plane_start_pauses_no_required_pool(t *testing.T) {
	t.Parallel()
	arbiter := clitest.HealthyPool("arbiter")
	arbiter.Labels = map[string]string{"operator.machineconfiguration.openshift.io/required-for-upgrade": ""}
	pc := newPlanCluster(t, nil, arbiter)
	if got := pc.start(t, func(o *startOptions) { o.pausePools = true }); got.Code != session.ExitDone || strings.Contains(got.Out, "arbiter") || !strings.Contains(got.Out, "Paused machine config pool worker") {
		t.Errorf("%+v", got)
	}
}

// Without a value, --accept accepts all risks except critical ones. A trailing hyphen withdraws an
// acceptance.
func TestPreChecks_accept_all_and_withdraw(t *testing.T) {
	t.Parallel()
	pc := newPlanCluster(t, []updatev1beta1.Insight{budget, known, quorum})
	accept := func(ids ...string) clitest.Result {
		return pc.preChecks(t, func(o *preChecksOptions) { o.accept = ids })
	}
	if got := accept(acceptAll); got.Code != session.ExitActionRequired || !strings.Contains(got.Out, "1 of 3 risks are not accepted") && !strings.Contains(got.Out, "1 of 3 risks is not accepted") {
		t.Errorf("all: %+v", got)
	}
	if got := accept(budget.UID + "-"); got.Code != session.ExitActionRequired || !strings.Contains(got.Out, "2 of 3 risks are not accepted") {
		t.Errorf("withdrawn: %+v", got)
	}
	if got := accept("pdb/x/y-"); got.Code != session.ExitFailed {
		t.Errorf("what was not accepted: %+v", got)
	}
}

// Risks may be given to the flag as printed, separated by a space.
func TestPreChecks_flag_accept(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"--accept":                    {acceptAll},
		"--accept pdb/shop/api":       {"pdb/shop/api"},
		"--accept=pdb/shop/api":       {"pdb/shop/api"},
		"--accept a --accept b-":      {"a", "b-"},
		"--accept a --reason because": {"a"},
		"--reason because --accept":   {acceptAll},
		"pdb/shop/api":                nil,
		"--accept=a pdb/shop/api":     nil,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			p := session.New(session.Environment{Program: "/usr/bin/oc-update", Terminal: &screen.Terminal{}})
			cmd := NewPreChecksCommand(p)
			if err := cmd.ParseFlags(strings.Fields(line)); err != nil {
				t.Fatal(err)
			}
			err := cmd.ValidateArgs(cmd.Flags().Args())
			if (err == nil) != (want != nil) {
				t.Fatalf("error: %v", err)
			}
			ids, flagErr := cmd.Flags().GetStringSlice("accept")
			if args := cmd.Flags().Args(); err == nil && len(args) > 0 {
				ids = append(slices.DeleteFunc(ids, func(id string) bool { return id == acceptAll }), args...)
			}
			if err == nil && (flagErr != nil || !slices.Equal(ids, want)) {
				t.Errorf("accepts %q, want %q", ids, want)
			}
		})
	}
}

// offer sets the releases offered by the ClusterVersion, with images by digest.
func (pc *planCluster) offer(t *testing.T, releases ...configv1.Release) {
	t.Helper()
	version := &configv1.ClusterVersion{}
	if err := pc.Get(t.Context(), clusterstate.VersionKey, version); err != nil {
		t.Fatal(err)
	}
	version.Status.AvailableUpdates = releases
	if err := pc.Client.Update(t.Context(), version); err != nil {
		t.Fatal(err)
	}
}

// The newest release, or a release given by its image, is found among the offered ones. The plan of a release
// is also checked if its image is not offered.
func TestStart_by_image_and_latest(t *testing.T) {
	t.Parallel()
	image := func(digit string) string { return "quay.io/a@sha256:" + strings.Repeat(digit, 64) }
	for name, tc := range map[string]struct {
		change         func(*startOptions)
		insights       []updatev1beta1.Insight
		code           session.ExitCode
		says           string
		version, image string
	}{
		"latest":                           {func(o *startOptions) { o.latest = true }, nil, session.ExitDone, "to 4.20.9", "4.20.9", image("9")},
		"latest with a risk":               {func(o *startOptions) { o.latest = true }, []updatev1beta1.Insight{budget}, session.ExitActionRequired, "pdb/shop/api", "", ""},
		"image that is offered":            {func(o *startOptions) { o.image = "mirror/b@sha256:" + strings.Repeat("8", 64) }, nil, session.ExitDone, "to 4.20.8", "4.20.8", "mirror/b@sha256:" + strings.Repeat("8", 64)},
		"image that is unknown":            {func(o *startOptions) { o.image = image("1") }, nil, session.ExitActionRequired, "name the release with --to", "", ""},
		"unknown image of a release":       {func(o *startOptions) { o.image, o.release = image("1"), "4.20.10" }, nil, session.ExitDone, "to 4.20.10", "4.20.10", image("1")},
		"unknown image without checks":     {func(o *startOptions) { o.image, o.preChecks = image("1"), false }, nil, session.ExitDone, image("1"), "", image("1")},
		"image of a release with a risk":   {func(o *startOptions) { o.image, o.release = image("1"), "4.20.10" }, []updatev1beta1.Insight{budget}, session.ExitActionRequired, "pdb/shop/api", "", ""},
		"another image of what is offered": {func(o *startOptions) { o.image, o.release = image("1"), "4.20.8" }, nil, session.ExitDone, "to 4.20.8", "4.20.8", image("1")},
		"image of an older release":        {func(o *startOptions) { o.image, o.release = image("1"), "4.20.5" }, nil, session.ExitActionRequired, "4.20.5 is not newer", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pc := newPlanCluster(t, tc.insights)
			pc.offer(t, configv1.Release{Version: "4.20.8", Image: image("8")}, configv1.Release{Version: "4.20.9", Image: image("9")})
			got := pc.start(t, func(o *startOptions) {
				o.release = ""
				tc.change(o)
			})
			if got.Code != tc.code || !strings.Contains(got.Out+got.ErrOut, tc.says) {
				t.Errorf("%+v, want %d: %s", got, tc.code, tc.says)
			}
			update, _ := pc.desired(t)
			if (update != nil) != (tc.code == session.ExitDone) || update != nil && (update.Version != tc.version || update.Image != tc.image) {
				t.Errorf("desired %+v, want %s, %s", update, tc.version, tc.image)
			}
		})
	}
}

// Unreviewed risks are neither accepted nor started. The error names the changes. Printing the plan again
// counts as a review.
func TestPlanCommands_refuse_risks_that_have_changed(t *testing.T) {
	t.Parallel()
	worse := budget
	worse.Impact.Level = updatev1beta1.LevelError
	for name, tc := range map[string]struct {
		now  []updatev1beta1.Insight
		says string
	}{
		"new":     {[]updatev1beta1.Insight{budget, known}, "risk/Slow is new (warning)"},
		"worse":   {[]updatev1beta1.Insight{worse}, "pdb/shop/api is of level error instead of warning"},
		"another": {[]updatev1beta1.Insight{known, quorum}, "etcd/EtcdMembersAvailable is new (critical), risk/Slow is new (warning)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pc := newPlanCluster(t, []updatev1beta1.Insight{budget, note})
			refresh := func(o *preChecksOptions) { o.refreshInformers = true }
			if got := pc.preChecks(t, refresh); got.Code != session.ExitActionRequired {
				t.Fatalf("%+v", got)
			}
			if got := pc.preChecks(t, func(o *preChecksOptions) { o.accept = []string{budget.UID} }); got.Code != session.ExitDone {
				t.Fatalf("accepted: %+v", got)
			}
			pc.insights = tc.now
			refused := func(command string, got clitest.Result) {
				t.Helper()
				if got.Code != session.ExitActionRequired || !strings.Contains(got.ErrOut, "the risks have changed since they were reviewed: "+tc.says) || strings.Count(got.ErrOut, "\n") != 1 {
					t.Errorf("%s: %+v, want %q", command, got, tc.says)
				}
			}
			refused("start", pc.start(t, func(o *startOptions) { o.refreshInformers = true }))
			refused("all", pc.preChecks(t, func(o *preChecksOptions) { o.accept = []string{acceptAll} }))
			refused("another one", pc.preChecks(t, func(o *preChecksOptions) { o.accept = []string{"pdb/other/one"} }))
			if update, _ := pc.desired(t); update != nil {
				t.Fatalf("desired %+v", update)
			}
			pc.preChecks(t, func(*preChecksOptions) {}) // counts as the review
			if got := pc.preChecks(t, func(o *preChecksOptions) { o.accept = []string{acceptAll} }); strings.Contains(got.ErrOut, "changed") {
				t.Errorf("after another review: %+v", got)
			}
		})
	}
}

// A risk named in the command counts as reviewed, and a resolved risk needs no review.
func TestPreChecks_accept_the_risk_that_is_new(t *testing.T) {
	t.Parallel()
	pc := newPlanCluster(t, []updatev1beta1.Insight{budget})
	pc.preChecks(t, func(*preChecksOptions) {})
	pc.insights = []updatev1beta1.Insight{known}
	got := pc.preChecks(t, func(o *preChecksOptions) { o.refreshInformers, o.accept = true, []string{known.UID} })
	if got.Code != session.ExitDone {
		t.Errorf("%+v", got)
	}
	if got := pc.start(t, func(*startOptions) {}); got.Code != session.ExitDone {
		t.Errorf("start: %+v", got)
	}
}

// If the controller updates the plan between read and write, reviewed risks are accepted and new ones are
// not.
func TestPreChecks_accept_while_the_plan_changes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		insights []updatev1beta1.Insight // found by the controller in between
		code     session.ExitCode
		says     string
	}{
		"the same risks": {[]updatev1beta1.Insight{budget}, session.ExitDone, "READY"},
		"a new risk":     {[]updatev1beta1.Insight{budget, known}, session.ExitActionRequired, "the risks have changed since they were reviewed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pc := newPlanCluster(t, []updatev1beta1.Insight{budget})
			pc.preChecks(t, func(*preChecksOptions) {})
			base, ok := pc.Client.(client.WithWatch)
			if !ok {
				t.Fatal("the fake client cannot be wrapped")
			}
			var once sync.Once
			pc.Client = interceptor.NewClient(base, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
					var failed error
					once.Do(func() {
						plan := &updatev1beta1.UpdatePlan{}
						if failed = c.Get(ctx, client.ObjectKeyFromObject(object), plan); failed == nil {
							metav1.SetMetaDataLabel(&plan.ObjectMeta, "written", "in-between")
							pc.insights = tc.insights
							pc.settle(plan)
							failed = c.Update(ctx, plan)
						}
					})
					if failed != nil {
						return failed
					}
					return c.Patch(ctx, object, patch, opts...)
				},
			})
			got := pc.preChecks(t, func(o *preChecksOptions) { o.accept = []string{acceptAll} })
			if got.Code != tc.code || !strings.Contains(got.Out+got.ErrOut, tc.says) {
				t.Errorf("got %+v, want %d: %s", got, tc.code, tc.says)
			}
		})
	}
}

// Updates of worker nodes start only if the plan for the control plane's release allows it.
func TestWorkerNodesStart_checks_the_plan(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		insights []updatev1beta1.Insight
		checks   bool
		code     session.ExitCode
		says     string
	}{
		"no risk":          {nil, true, session.ExitDone, "Unpaused machine config pool infra."},
		"a risk":           {[]updatev1beta1.Insight{budget}, true, session.ExitActionRequired, "not started: not accepted: builtin-readiness pdb/shop/api; see \"oc update pre-checks --version 4.20.6\""},
		"without the plan": {[]updatev1beta1.Insight{budget}, false, session.ExitDone, "Unpaused machine config pool infra."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			infra := clitest.HealthyPool("infra")
			infra.Spec.Paused = true
			pc := newPlanCluster(t, tc.insights, infra)
			got := pc.do(t, func(p *session.Session) error {
				return (&workersOptions{
					preChecks: tc.checks, planRequest: planRequest{Session: p, maxAge: defaultMaxAge, namespace: session.ControllerNamespace}, ChangeOptions: session.ChangeOptions{Yes: true},
				}).startWorkers(t.Context(), pc.Cluster)
			})
			if got.Code != tc.code || !strings.Contains(got.Out+got.ErrOut, tc.says) || (pausedPools(t, pc) == "") != (tc.code == session.ExitDone) {
				t.Errorf("%+v, paused %q, want %d: %s", got, pausedPools(t, pc), tc.code, tc.says)
			}
		})
	}
}

// Several releases are compared in one column each.
func TestPreChecks_compare_releases(t *testing.T) {
	t.Parallel()
	for _, width := range []int{60, 80, 200} {
		t.Run(strconv.Itoa(width), func(t *testing.T) {
			t.Parallel()
			pc := newPlanCluster(t, []updatev1beta1.Insight{budget, quorum})
			if got := pc.preChecks(t, func(o *preChecksOptions) { o.accept = []string{budget.UID} }); got.Code != session.ExitActionRequired {
				t.Fatalf("%+v", got)
			}
			pc.insights = []updatev1beta1.Insight{budget, known}
			got := pc.do(t, func(p *session.Session) error {
				p.Terminal.Width = width
				return (&preChecksOptions{
					releases: []string{planTarget, "4.20.9"}, planRequest: planRequest{Session: p, maxAge: defaultMaxAge, namespace: session.ControllerNamespace}, format: session.OutputFlags(&cobra.Command{}),
				}).runPreChecks(t.Context(), pc.Cluster)
			})
			if got.Code != session.ExitActionRequired {
				t.Errorf("%+v", got)
			}
			clitest.Golden(t, fmt.Sprintf("plans/compared-%d.txt", width), got.Out, true)
			clitest.CheckWidth(t, got.Out, width)
		})
	}
}
