// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informers"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

const planTarget = "4.20.8"

// planCluster is a fake cluster at 4.20.6 with a controller that analyzes plans at once.
type planCluster struct {
	*fakeCluster

	insights []updatev1beta1.Insight
	analyses int
	// silent is a controller that does nothing.
	silent bool
}

func newPlanCluster(t *testing.T, insights []updatev1beta1.Insight, objects ...client.Object) *planCluster {
	t.Helper()
	pc := &planCluster{fakeCluster: newFakeCluster(t, objects...), insights: insights}
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
			if err := c.Patch(ctx, object, patch, opts...); err != nil {
				return err
			}
			return pc.analyze(ctx, c, object)
		},
	})
	return pc
}

// analyze is what the controller does with a plan.
func (pc *planCluster) analyze(ctx context.Context, c client.WithWatch, object client.Object) error {
	plan, is := object.(*updatev1beta1.UpdatePlan)
	if !is || pc.silent {
		return nil
	}
	status := &plan.Status
	status.FromRelease = "4.20.6"
	if token := plan.Annotations[updatev1beta1.RefreshAnnotation]; status.LastRefresh != token {
		pc.analyses++
		status.LastRefresh, status.LastAnalysisTime = token, &metav1.Time{Time: now}
	}
	pc.settle(plan)
	return c.Update(ctx, plan)
}

func (pc *planCluster) settle(plan *updatev1beta1.UpdatePlan) {
	updateplan.Arrange(&plan.Status, []updatev1beta1.InformerInsights{{Name: informers.NameReadiness, Insights: pc.insights}}, func(string) string { return "" }, now)
	updateplan.Settle(plan, updateplan.Insights(&plan.Status), updateplan.Analysis{Now: now, Current: "4.20.6"})
}

// risk returns an insight that needs acceptance.
func risk(uid string, level updatev1beta1.Level, summary string) updatev1beta1.Insight {
	return updatev1beta1.Insight{
		UID: uid, UUID: fmt.Sprintf("%032x", uid)[:32], FirstObservedTime: metav1.NewTime(now.Add(-time.Minute)), Scope: updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane},
		Impact: updatev1beta1.InsightImpact{Level: level, Summary: summary, Description: "A longer text.\nWith a remedy."},
	}
}

var (
	budget = risk("pdb/shop/api", updatev1beta1.LevelWarning, "PodDisruptionBudgets that allow no disruption: shop/api")
	quorum = risk("etcd/EtcdMembersAvailable", updatev1beta1.LevelCritical, "etcd is not healthy: EtcdMembersAvailable")
	known  = risk("risk/Slow", updatev1beta1.LevelWarning, "the update has the known risk Slow")
	note   = risk("alert/a/b", updatev1beta1.LevelInfo, "warning alert b is firing")
)

// passingClock is a clock whose time passes while its caller waits.
type passingClock struct{ *clocktesting.FakeClock }

// After lets the time pass.
func (c passingClock) After(d time.Duration) <-chan time.Time {
	c.Step(d)
	passed := make(chan time.Time, 1)
	passed <- c.Now()
	return passed
}

// do runs a part of the program on the cluster.
func (pc *planCluster) do(t *testing.T, run func(*Program) error) result {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	p := New(Environment{Program: "/usr/bin/oc-update", Clock: passingClock{clocktesting.NewFakeClock(now)}, Streams: streams, Terminal: &Terminal{}})
	err := run(p)
	if exit, ok := errors.AsType[*exitError](err); err != nil && (!ok || exit.err != nil) {
		fmt.Fprintln(errOut, p.explain(err))
	}
	return result{exitCode(err), out.String(), errOut.String()}
}

func (pc *planCluster) preChecks(t *testing.T, change func(*preChecksOptions)) result {
	t.Helper()
	return pc.do(t, func(p *Program) error {
		o := &preChecksOptions{planRequest: planRequest{release: planTarget, maxAge: defaultMaxAge}, format: outputFlags(&cobra.Command{})}
		change(o)
		return p.runPreChecks(t.Context(), pc.Cluster, o)
	})
}

func (pc *planCluster) start(t *testing.T, change func(*startOptions)) result {
	t.Helper()
	return pc.do(t, func(p *Program) error {
		o := &startOptions{planRequest: planRequest{release: planTarget, maxAge: defaultMaxAge}, preChecks: true}
		change(o)
		return p.runStart(t.Context(), pc.Cluster, o)
	})
}

func TestPlanScreens(t *testing.T) {
	t.Parallel()
	many := []updatev1beta1.Insight{quorum, budget, known, note, risk("operator/dns/OperatorDegraded", "error", "cluster operators degraded")}
	accepted := updatev1beta1.AcceptedInsight{
		UpdateInformer: informers.NameReadiness, UID: budget.UID, UUID: budget.UUID, Accepted: true, AcceptedBy: "ann", Reason: "the shop is closed",
		AcceptedTime: &metav1.Time{Time: now},
	}
	for name, tc := range map[string]struct {
		insights []updatev1beta1.Insight
		accepted []updatev1beta1.AcceptedInsight
		change   func(*updatev1beta1.UpdatePlan)
		details  bool
		source   string
		code     ExitCode
	}{
		"ready":           {code: ExitDone},
		"accepted":        {insights: []updatev1beta1.Insight{budget}, accepted: []updatev1beta1.AcceptedInsight{accepted}, details: true, code: ExitDone},
		"not-ready":       {insights: many, accepted: []updatev1beta1.AcceptedInsight{accepted}, code: ExitActionRequired},
		"details":         {insights: many, details: true, code: ExitActionRequired},
		"without-control": {insights: []updatev1beta1.Insight{budget}, source: "live reads", code: ExitActionRequired},
		"incomplete":      {change: func(p *updatev1beta1.UpdatePlan) { p.Status.LastAnalysisTime = nil }, code: ExitUnknown},
		"old": {change: func(p *updatev1beta1.UpdatePlan) {
			p.Status.LastAnalysisTime = &metav1.Time{Time: now.Add(-2 * time.Hour)}
		}, code: ExitActionRequired},
		"being-installed": {insights: []updatev1beta1.Insight{budget}, change: func(p *updatev1beta1.UpdatePlan) {
			p.Spec.TargetRelease, p.Name, p.Status.FromRelease = "4.20.6", "update-plan-4.20.6", "4.20.6"
		}, code: ExitActionRequired},
		"no-update": {change: func(p *updatev1beta1.UpdatePlan) { p.Spec.TargetRelease, p.Name = "4.20.6", "update-plan-4.20.6" }, code: ExitActionRequired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pc := &planCluster{insights: tc.insights}
			plan := &updatev1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: "update-plan-" + planTarget}, Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: planTarget, AcceptedInsights: tc.accepted}}
			plan.Status.FromRelease, plan.Status.LastAnalysisTime = "4.20.6", &metav1.Time{Time: now.Add(-12 * time.Second)}
			if tc.change != nil {
				tc.change(plan)
			}
			pc.settle(plan)
			if name == "being-installed" {
				updateplan.Settle(plan, updateplan.Insights(&plan.Status), updateplan.Analysis{Now: now, Current: "4.20.6", NotAnUpdate: "the cluster is being updated to 4.20.6"})
			}
			if name == "no-update" {
				updateplan.Settle(plan, nil, updateplan.Analysis{Now: now, Current: "4.20.6", NotAnUpdate: "the cluster is at 4.20.6"})
			}
			if code := planVerdict(plan, now); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			for _, width := range []int{60, 80, 200} {
				s := &planScreen{layout: layout{width: width}, plan: plan, now: now, name: "oc update", details: tc.details, source: tc.source}
				printed := s.render(tc.code)
				golden(t, fmt.Sprintf("plans/%s-%d.txt", name, width), printed, true)
				checkWidth(t, printed, width)
			}
		})
	}
}

// A printed command accepts the insight that it is about, and a shell reads it as one command.
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
			s := &planScreen{layout: layout{width: 200}, plan: plan, now: now, name: "oc update"}
			if got := s.render(ExitActionRequired); !strings.Contains(got, " --accept "+want+" --reason WHY\n") {
				t.Errorf("printed %s, want --accept %s", got, want)
			}
		})
	}
}

// The commands that the checks name are printed on one line each, at any width, and for the client that was
// invoked.
func TestPlanScreens_print_whole_commands(t *testing.T) {
	t.Parallel()
	const target, gate = "4.21.2", "ack-4.20-kube-1.34-api-removals-in-4.21"
	version := clusterstate.Version{Installed: "4.20.6"}
	facts := informers.PlanFacts{
		Gates:             []clusterstate.AdminGate{{Name: gate, Minor: "4.20", Description: "Read the notes."}},
		APIs:              []clusterstate.DeprecatedAPI{{Resource: "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", RemovedIn: "1.34", Requests: 1}},
		Etcd:              []clusterstate.EtcdCondition{{Type: clusterstate.EtcdMembersAvailable, Condition: clusterstate.Condition{Status: "False"}}},
		OptionalOperators: []clusterstate.ClusterServiceVersion{{Namespace: "openshift-storage", Name: "odf-operator.v4.20.1", Phase: "Failed"}},
	}
	pc := &planCluster{}
	for _, finding := range informers.Readiness(informers.Facts{Now: now, Version: version}, facts, target) {
		pc.insights = append(pc.insights, insight.FromFinding(informers.NameReadiness, finding, now))
	}
	stranger := risk("stranger", updatev1beta1.LevelWarning, "x")
	stranger.Impact.Description = "Run this: oc delete namespace shop " + strings.Repeat("now ", 20)
	plan := &updatev1beta1.UpdatePlan{Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: target}}
	updateplan.Arrange(&plan.Status, []updatev1beta1.InformerInsights{
		{Name: informers.NameReadiness, Insights: pc.insights}, {Name: "stranger", Insights: []updatev1beta1.Insight{stranger}},
	}, func(string) string { return "" }, now)
	for _, width := range []int{60, 80, 200} {
		for name, client := range map[string]string{"oc update": "oc", "kubectl update": "kubectl"} {
			s := &planScreen{layout: layout{width: width}, plan: plan, now: now, name: name, details: true}
			printed := s.render(ExitActionRequired)
			for _, command := range []string{
				`-n openshift-config patch configmap admin-acks --type=merge --patch '{"data":{"` + gate + `":"true"}}'`,
				"get apirequestcount flowschemas.v1beta3.flowcontrol.apiserver.k8s.io -o yaml", "-n openshift-etcd get pods -o wide",
				"-n openshift-storage describe clusterserviceversion odf-operator.v4.20.1",
			} {
				if line := "\n" + blank(labelWidth+columnGap) + client + " " + command + "\n"; !strings.Contains(printed, line) {
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
		{func(*preChecksOptions) {}, 1}, // it is recent
		{func(o *preChecksOptions) { o.maxAge = 0 }, 1},
		{func(o *preChecksOptions) { o.refreshInformers = true }, 1},
	} {
		got := pc.preChecks(t, tc.change)
		if got.code != ExitDone || !strings.HasPrefix(got.out, "READY") {
			t.Errorf("%d: %+v", i, got)
		}
	}
	if pc.analyses != 1 { // the fake clock stands still, and so does the token
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

// TestPreChecks_print_the_plan prints the plan as an object of the API, with the exit code of its verdict.
func TestPreChecks_print_the_plan(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "yaml"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			pc := newPlanCluster(t, []updatev1beta1.Insight{risk("slow", updatev1beta1.LevelWarning, "The disk is slow")})
			got := pc.preChecks(t, func(o *preChecksOptions) { *o.format.flags.OutputFormat = format })
			var plan updatev1beta1.UpdatePlan
			if err := yaml.UnmarshalStrict([]byte(got.out), &plan); err != nil {
				t.Fatalf("%v:\n%s", err, got.out)
			}
			text := pc.preChecks(t, func(*preChecksOptions) {})
			if plan.Kind != "UpdatePlan" || plan.Spec.TargetRelease != planTarget || !strings.Contains(got.out, "The disk is slow") || got.code != text.code || got.errOut != "" {
				t.Errorf("exit code %d, %d as text, error %q:\n%s", got.code, text.code, got.errOut, got.out)
			}
			if (format == "json") != strings.HasPrefix(got.out, "{") {
				t.Errorf("this is no %s:\n%s", format, got.out)
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
		code     ExitCode
		says     string
	}{
		"by uid":                  {[]updatev1beta1.Insight{budget}, []string{budget.UID}, "closed", ExitDone, "READY"},
		"by uuid":                 {[]updatev1beta1.Insight{budget}, []string{budget.UUID}, "", ExitDone, "READY"},
		"by informer and uid":     {[]updatev1beta1.Insight{budget}, []string{"builtin-readiness/" + budget.UID}, "", ExitDone, "READY"},
		"one of two":              {[]updatev1beta1.Insight{budget, known}, []string{budget.UID}, "", ExitActionRequired, "1 of 2 risks are not accepted"},
		"what is not there":       {[]updatev1beta1.Insight{budget}, []string{"pdb/x/y"}, "", ExitFailed, `no risk has the uid or uuid "pdb/x/y"`},
		"what needs none":         {[]updatev1beta1.Insight{note}, []string{note.UID}, "", ExitFailed, "no risk has"},
		"ambiguous":               {[]updatev1beta1.Insight{budget, twin}, []string{budget.UID}, "", ExitFailed, "2 risks have the uid"},
		"ambiguous by uuid":       {[]updatev1beta1.Insight{budget, twin}, []string{twin.UUID}, "", ExitActionRequired, "1 of 2 risks are"},
		"critical without reason": {[]updatev1beta1.Insight{quorum}, []string{quorum.UID}, "", ExitUsage, "--reason"},
		"critical":                {[]updatev1beta1.Insight{quorum}, []string{quorum.UID}, "restored", ExitDone, "READY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pc := newPlanCluster(t, tc.insights)
			got := pc.preChecks(t, func(o *preChecksOptions) { o.accept, o.reason = tc.accept, tc.reason })
			if got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.says) || strings.Count(got.errOut, "\n") > 1 {
				t.Errorf("got %+v, want %d: %s", got, tc.code, tc.says)
			}
			plan := &updatev1beta1.UpdatePlan{}
			if err := pc.Get(t.Context(), client.ObjectKey{Name: "update-plan-" + planTarget}, plan); err != nil {
				t.Fatal(err)
			}
			for _, e := range plan.Spec.AcceptedInsights {
				if e.AcceptedBy != "ann" || e.UUID == "" || !e.AcceptedTime.Time.Equal(now) || e.Reason != tc.reason {
					t.Errorf("accepted %+v", e)
				}
			}
			if (len(plan.Spec.AcceptedInsights) > 0) != (tc.code == ExitDone || tc.code == ExitActionRequired) {
				t.Errorf("accepted %+v", plan.Spec.AcceptedInsights)
			}
		})
	}
}

// An acceptance that is repeated replaces the earlier one, and one that changes nothing is accepted, too.
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
		code   ExitCode
		want   []string
	}{
		{[]string{budget.UID}, "closed", ExitActionRequired, []string{budget.UID + " closed true"}},
		{[]string{budget.UID}, "closed", ExitActionRequired, []string{budget.UID + " closed true"}},
		{[]string{budget.UUID}, "still closed", ExitActionRequired, []string{budget.UID + " still closed true"}},
		{[]string{quorum.UID, quorum.UID, quorum.UUID}, "restored", ExitDone, []string{budget.UID + " still closed true", quorum.UID + " restored true"}},
	} {
		got := pc.preChecks(t, func(o *preChecksOptions) { o.accept, o.reason = step.accept, step.reason })
		if got.code != step.code {
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
	if got := silent.preChecks(t, func(*preChecksOptions) {}); got.code != ExitUnknown || !strings.Contains(got.out, "has not begun the analysis") {
		t.Errorf("a controller that is silent: %+v", got)
	}
	absent := newPlanCluster(t, nil)
	absent.err = func(kind string) error {
		if kind == "UpdatePlan" {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "config.openshift.io", Kind: kind}}
		}
		return nil
	}
	if got := silent.start(t, func(*startOptions) {}); got.code != ExitActionRequired || !strings.Contains(got.errOut, "not started: ") {
		t.Errorf("start with a controller that is silent: %+v", got)
	}
	got := absent.preChecks(t, func(*preChecksOptions) {})
	if got.code != ExitActionRequired || !strings.Contains(got.out, "is not installed") || !strings.Contains(got.out, "unreadable/etcd") || strings.Contains(got.out, "--accept") {
		t.Errorf("no controller: %+v", got)
	}
	got = absent.preChecks(t, func(o *preChecksOptions) { o.release = "4.20.6" })
	if got.code != ExitActionRequired || !strings.Contains(got.out, "NOT READY  4.20.6. The cluster is at 4.20.6.") || strings.Contains(got.out, "unreadable/") {
		t.Errorf("no controller, and the release is installed: %+v", got)
	}
	if got := absent.start(t, func(*startOptions) {}); got.code != ExitActionRequired || !strings.Contains(got.errOut, "--pre-checks=false") {
		t.Errorf("start without a controller: %+v", got)
	}
	if got := absent.preChecks(t, func(o *preChecksOptions) { o.accept = []string{"x"} }); got.code != ExitFailed || strings.Count(got.errOut, "\n") != 1 {
		t.Errorf("accept without a controller: %+v", got)
	}
}

// lockHolder returns what the built-in checks report of an upgrade to a release that holds the upgrade lock.
func lockHolder(t *testing.T, release string) updatev1beta1.Insight {
	t.Helper()
	facts := informers.PlanFacts{Holder: lock.Holder{Kind: "UpgradeJob", Namespace: "ops", Name: "weekly", UID: "1"}, HolderTarget: release}
	for _, finding := range informers.Readiness(informers.Facts{Now: now}, facts, planTarget) {
		if strings.HasPrefix(finding.ID, "lock/") {
			return insight.FromFinding(informers.NameReadiness, finding, now)
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
		code     ExitCode
		says     string
		bypassed string
	}{
		"no risk":          {nil, func(*startOptions) {}, ExitDone, "Requested the update from 4.20.6 to 4.20.8", ""},
		"risks":            {[]updatev1beta1.Insight{budget}, func(*startOptions) {}, ExitActionRequired, "not started: not accepted: builtin-readiness pdb/shop/api", ""},
		"lock held":        {[]updatev1beta1.Insight{held}, func(*startOptions) {}, ExitActionRequired, "not started: not accepted: builtin-readiness lock/UpgradeJob ops/weekly; see \"oc update pre-checks --version 4.20.8\"", ""},
		"lock of its own":  {[]updatev1beta1.Insight{ours}, func(*startOptions) {}, ExitDone, "Requested", ""},
		"bypassed":         {[]updatev1beta1.Insight{budget}, func(o *startOptions) { o.preChecks = false }, ExitDone, "Requested", planTarget},
		"not offered":      {nil, func(o *startOptions) { o.release, o.preChecks = "4.20.9", false }, ExitActionRequired, `channel "stable-4.20" does not offer 4.20.9`, ""},
		"older":            {nil, func(o *startOptions) { o.release, o.preChecks = "4.20.5", false }, ExitActionRequired, "4.20.5 is not later", ""},
		"installed":        {nil, func(o *startOptions) { o.release, o.preChecks = "4.20.6", false }, ExitActionRequired, "4.20.6 is not later", ""},
		"controller alone": {nil, func(o *startOptions) { o.pausePools = true }, ExitDone, "Paused machine config pool worker.\nRequested", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pc := newPlanCluster(t, tc.insights)
			got := pc.start(t, tc.change)
			if got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.says) || strings.Count(got.errOut, "\n") > 1 {
				t.Errorf("got %+v, want %d: %s", got, tc.code, tc.says)
			}
			update, annotation := pc.desired(t)
			if (update != nil) != (tc.code == ExitDone) || update != nil && (update.Version != planTarget || update.Image != "image-4.20.8") || annotation != tc.bypassed {
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

// A control plane whose update is denied leaves no pool paused, and one whose update fails later names
// the pools that stay paused.
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
			paused := healthyPool("before")
			paused.Spec.Paused = true
			pc := newPlanCluster(t, nil, healthyPool("infra"), paused)
			base, ok := pc.Client.(client.WithWatch)
			if !ok {
				t.Fatal("the fake client cannot be wrapped")
			}
			pc.Client = interceptor.NewClient(base, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if tc.fails(object, (&client.PatchOptions{}).ApplyOptions(opts)) {
						return forbidden()
					}
					return c.Patch(ctx, object, patch, opts...)
				},
			})
			got := pc.start(t, func(o *startOptions) { o.pausePools = true })
			if got.code != ExitFailed || strings.Count(got.errOut, "\n") != 1 {
				t.Errorf("%+v", got)
			}
			if says := "oc update worker-nodes start --pool " + tc.paused; strings.Contains(got.errOut, says) != (tc.paused != "") {
				t.Errorf("error %q, want %q", got.errOut, says)
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

// denied returns the error by which the start gate denies a request.
func denied() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterversions"}, "version",
		errors.New("ValidatingAdmissionPolicy 'update-start-gate' with binding 'update-start-gate' denied request: its risks are not accepted"))
}

// The start gate learns a moment later than the plan that an update may be started. What it denies for
// longer, or to a user who bypasses the plan, is refused.
func TestStart_through_the_gate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		denials int
		change  func(*startOptions)
		code    ExitCode
		asked   int
	}{
		"open":              {0, func(*startOptions) {}, ExitDone, 1},
		"opens":             {3, func(*startOptions) {}, ExitDone, 4},
		"stays closed":      {100, func(*startOptions) {}, ExitActionRequired, 11},
		"is bypassed":       {0, func(o *startOptions) { o.preChecks = false }, ExitDone, 1},
		"bypass is denied":  {100, func(o *startOptions) { o.preChecks = false }, ExitActionRequired, 1},
		"control plane":     {2, func(o *startOptions) { o.pausePools = true }, ExitDone, 4},
		"closed, no pauses": {100, func(o *startOptions) { o.pausePools = true }, ExitActionRequired, 11},
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
			if got.code != tc.code || asked != tc.asked {
				t.Errorf("%d requests, want %d, exit code %d, want %d: %s", asked, tc.asked, got.code, tc.code, got.errOut)
			}
			if refused := tc.code == ExitActionRequired; strings.Contains(got.errOut, "not started: ") != refused || strings.Contains(got.errOut, "ClusterRole update-bypasser") != refused {
				t.Errorf("error %q", got.errOut)
			}
			if strings.Contains(got.out, "Paused") != (name == "control plane") {
				t.Errorf("output %q", got.out)
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
	if got := pc.preChecks(t, func(o *preChecksOptions) { o.accept = []string{known.UID, budget.UID} }); got.code != ExitDone {
		t.Fatalf("%+v", got)
	}
	if got := pc.start(t, func(*startOptions) {}); got.code != ExitDone {
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
	paused := func(t *testing.T, pc *planCluster) string {
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
	for name, tc := range map[string]struct {
		pools    []string
		updating bool
		code     ExitCode
		left     string
	}{
		"all but those of the operator": {nil, false, ExitDone, "delayed"},
		"one":                           {[]string{"infra"}, false, ExitDone, "delayed worker"},
		"one of the operator":           {[]string{"delayed"}, false, ExitDone, "infra worker"},
		"unknown":                       {[]string{"x"}, false, ExitUsage, "delayed infra worker"},
		"master":                        {[]string{"master"}, false, ExitUsage, "delayed infra worker"},
		"during an update":              {nil, true, ExitActionRequired, "delayed infra worker"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			infra, delayed := healthyPool("infra"), healthyPool("delayed")
			infra.Spec.Paused, delayed.Spec.Paused = true, true
			delayed.Annotations = map[string]string{clusterstate.AnnotationPausedBy: clusterstate.PoolMark{
				JobUID: "job", Attempt: 1, ReleaseAfter: now, ReleaseBefore: now.Add(time.Hour),
			}.String()}
			pc := newPlanCluster(t, nil, infra, delayed)
			if got := pc.start(t, func(o *startOptions) { o.pausePools = true }); got.code != ExitDone || paused(t, pc) != "delayed infra worker" {
				t.Fatalf("%+v, paused %s", got, paused(t, pc))
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
			got := pc.do(t, func(p *Program) error { return p.startWorkers(t.Context(), pc.Cluster, tc.pools) })
			if got.code != tc.code || paused(t, pc) != tc.left {
				t.Errorf("%+v, paused %s, want %s", got, paused(t, pc), tc.left)
			}
			if says := "oc update worker-nodes start --pool delayed\n"; strings.HasSuffix(got.out, says) != (tc.pools == nil && !tc.updating) {
				t.Errorf("printed %q, and %q", got.out, says)
			}
			if tc.code != ExitDone {
				return
			}
			got = pc.do(t, func(p *Program) error { return p.startWorkers(t.Context(), pc.Cluster, tc.pools) })
			if says := "No machine config pool of worker nodes is paused."; got.code != ExitDone || strings.Contains(got.out, says) {
				t.Errorf("again: %+v, although %s are paused", got, tc.left)
			}
		})
	}
}

func TestPlanCommandLines(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"pre-checks":                                       "--version",
		"pre-checks --version latest":                      "--version",
		"status pre-checks --version 4.20":                 "--version",
		"pre-checks --version 4.20.8 --reason x":           "--accept",
		"pre-checks --version 4.20.8 -o foo":               "json",
		"start":                                            "--to",
		"control-plane start --to x":                       "--to",
		"start --to 4.20.8 --replay .":                     "--replay",
		"worker-nodes start --replay .":                    "--replay",
		"start 4.20.8":                                     "4.20.8",
		"pre-checks --version 4.1.0 --accept x --replay .": "--replay",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			if got := run(t, strings.Fields(args)...); got.code != ExitUsage || !strings.Contains(got.errOut, want) || strings.Count(got.errOut, "\n") != 1 {
				t.Errorf("%+v, want a line about %s", got, want)
			}
		})
	}
}
