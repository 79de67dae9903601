// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// updateStatus returns the object that the controller publishes.
func updateStatus(c screenCase) *updatev1beta1.UpdateStatus {
	active := metav1.Condition{Type: updatev1beta1.ConditionUpdateActive, Status: metav1.ConditionFalse, Reason: "x"}
	if c.assessment.State == updatev1beta1.StateProgressing {
		active.Status = metav1.ConditionTrue
	}
	pending := metav1.Condition{Type: updatev1beta1.ConditionUpdatePending, Status: metav1.ConditionTrue, Reason: "x"}
	if c.assessment.State == updatev1beta1.StateIdle {
		pending.Status = metav1.ConditionFalse
	}
	return &updatev1beta1.UpdateStatus{
		ObjectMeta: metav1.ObjectMeta{Name: updatev1beta1.UpdateStatusName},
		Status: updatev1beta1.UpdateStatusStatus{
			ControlPlane: &updatev1beta1.ControlPlaneStatus{Section: updatev1beta1.Section{Conditions: []metav1.Condition{active, pending}}},
			Assessment:   &c.assessment, ObservedTime: c.observed,
		},
	}
}

// runStatus runs "status" on a cluster.
func runStatus(tb testing.TB, cluster *session.Cluster, o statusOptions, format string) clitest.Result {
	tb.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	p := session.New(session.Environment{Program: "/usr/bin/oc-update", Clock: clocktesting.NewFakeClock(cluster.Clock.Now()), Streams: streams, Terminal: &screen.Terminal{}})
	o.format = session.OutputFlags(&cobra.Command{})
	o.format.Format = format
	o.namespace = session.ControllerNamespace
	o.Session = p
	err := o.report(tb.Context(), cluster)
	if exit, ok := errors.AsType[*session.ExitError](err); err != nil && (!ok || exit.Err != nil) {
		fmt.Fprintln(errOut, p.Explain(err))
	}
	return clitest.Result{Code: session.CodeOf(err), Out: out.String(), ErrOut: errOut.String()}
}

func TestStatus_of_the_controller_takes_three_requests(t *testing.T) {
	t.Parallel()
	cluster := clitest.NewFakeCluster(t, updateStatus(idleScreen()), clitest.Lease(4*time.Second))
	got := runStatus(t, cluster.Cluster, statusOptions{}, "")
	clitest.Golden(t, "screens/idle-80.txt", got.Out, false)
	if got.Code != session.ExitDone || got.ErrOut != "" {
		t.Errorf("exit code %d, error %q", got.Code, got.ErrOut)
	}
	if want := []string{"get UpdateStatus", "get Lease", "get ClusterVersion"}; !cmp.Equal(want, cluster.Requests) {
		t.Errorf("requests %q, want %q", cluster.Requests, want)
	}
}

// The status of a requested update counts before the Cluster Version Operator has accepted the request. The
// status of an accepted update does not count if the ClusterVersion is about another release.
func TestStatus_of_a_requested_update(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		started *metav1.Time
		from    string
		counts  bool
	}{
		"requested":          {nil, "4.20.6", true},
		"started":            {clitest.Ago(time.Minute), "4.20.6", false},
		"from other release": {nil, "4.20.5", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requested := progressingScreen() // the ClusterVersion is at 4.20.6
			requested.assessment.FromRelease, requested.assessment.Release, requested.assessment.StartedTime = tc.from, "4.20.7", tc.started
			p, err := published(t.Context(), clitest.NewFakeCluster(t, updateStatus(requested), clitest.Lease(0)), session.ControllerNamespace, clitest.Now)
			if err != nil || (p.stale == nil) != tc.counts {
				t.Errorf("stale: %+v, error %v, counts: %t", p.stale, err, tc.counts)
			}
		})
	}
}

// A ClusterVersion without a history names no release, so a status that names one cannot be compared.
func TestStatus_without_a_release(t *testing.T) {
	t.Parallel()
	history := clitest.HealthyObjects()[0].(*configv1.ClusterVersion).Status.History
	for name, tc := range map[string]struct {
		release string
		history []configv1.UpdateHistory
		want    string
	}{
		"neither":               {"", nil, ""},
		"not of the cluster":    {"4.20.6", nil, "its status cannot be compared with the ClusterVersion: its history names no release"},
		"not of the assessment": {"", history, "its status is about no release, but the ClusterVersion is about 4.20.6"},
		"both":                  {"4.20.6", history, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			screen := idleScreen()
			screen.assessment.Release = tc.release
			cluster := clitest.NewFakeCluster(t, updateStatus(screen), clitest.Lease(0))
			var version configv1.ClusterVersion
			if err := cluster.Get(t.Context(), clusterstate.VersionKey, &version); err != nil {
				t.Fatal(err)
			}
			version.Status.History = tc.history
			if err := cluster.Client.Update(t.Context(), &version); err != nil {
				t.Fatal(err)
			}
			p, err := published(t.Context(), cluster, session.ControllerNamespace, clitest.Now)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if p.stale != nil {
				got = p.stale.Message
			}
			if got != tc.want {
				t.Errorf("stale: %q, want %q", got, tc.want)
			}
		})
	}
}

// A possibly outdated status is not printed. The cluster is read instead, and the controller is reported as
// missing.
func TestStatus_that_is_outdated_does_not_count(t *testing.T) {
	t.Parallel()
	old := progressingScreen()
	old.assessment.Release = "4.20.6"
	old.observed = clitest.Ago(4 * time.Minute)
	ahead := old
	ahead.observed = clitest.Ago(-4 * time.Minute)
	paused := waitingScreen()
	paused.assessment.Release, paused.observed = "4.20.6", old.observed
	unassessed := updateStatus(idleScreen())
	unassessed.Status.Assessment = nil
	other := idleScreen()
	other.assessment.Release = "4.20.5"
	tests := map[string]struct {
		objects []client.Object
		err     func(kind string) error
		want    string
	}{
		"Lease is 61 seconds old":           {[]client.Object{updateStatus(idleScreen()), clitest.Lease(61 * time.Second)}, nil, "no sign of life for 61s"},
		"Lease is 4 minutes ahead":          {[]client.Object{updateStatus(idleScreen()), clitest.Lease(-4 * time.Minute)}, nil, "its Lease was renewed in the future"},
		"active and observed in 4 minutes":  {[]client.Object{updateStatus(ahead), clitest.Lease(0)}, nil, "its status is from the future"},
		"no Lease":                          {[]client.Object{updateStatus(idleScreen())}, nil, "no sign of life"},
		"Lease is forbidden":                {[]client.Object{updateStatus(idleScreen()), clitest.Lease(0)}, clitest.ErrorOf("Lease", clitest.Forbidden()), "you are not allowed to read it"},
		"active and observed 4 minutes ago": {[]client.Object{updateStatus(old), clitest.Lease(0)}, nil, "it has not confirmed its status for 4m"},
		"paused and observed 4 minutes ago": {[]client.Object{updateStatus(paused), clitest.Lease(0)}, nil, "it has not confirmed its status for 4m"},
		"no assessment":                     {[]client.Object{unassessed, clitest.Lease(0)}, nil, "no assessment"},
		"no status yet":                     {[]client.Object{clitest.Lease(0)}, nil, "not published a status yet"},
		"about another release":             {[]client.Object{updateStatus(other), clitest.Lease(0)}, nil, "about release 4.20.5"},
		"UpdateStatus is forbidden":         {[]client.Object{updateStatus(idleScreen()), clitest.Lease(0)}, clitest.ErrorOf("UpdateStatus", clitest.Forbidden()), "you are not allowed to read it"},
		"UpdateStatus is unavailable":       {[]client.Object{updateStatus(idleScreen()), clitest.Lease(0)}, clitest.ErrorOf("UpdateStatus", clitest.Unavailable()), "overloaded"},
		"ClusterVersion is forbidden":       {[]client.Object{updateStatus(idleScreen()), clitest.Lease(0)}, clitest.ErrorOf("ClusterVersion", clitest.Forbidden()), "cannot be compared"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clitest.NewFakeCluster(t, test.objects...)
			if test.err != nil {
				cluster.Err = test.err
			}
			got := runStatus(t, cluster.Cluster, statusOptions{}, "")
			if unwrapped := strings.Join(strings.Fields(got.Out), " "); !strings.Contains(unwrapped, "Update Status Controller: ") || !strings.Contains(unwrapped, test.want) {
				t.Errorf("the screen does not report %q of the controller:\n%s", test.want, got.Out)
			}
			if strings.Contains(got.Out, "Live") || got.ErrOut != "" {
				t.Errorf("error %q, screen:\n%s", got.ErrOut, got.Out)
			}
		})
	}
}

// Sources that the controller could not read appear on the first screen, because the findings based on them
// are unconfirmed.
func TestStatus_published_with_optional_sources_missing(t *testing.T) {
	t.Parallel()
	shown := progressingScreen()
	for _, name := range []string{"alerts", "machine configs"} {
		shown.assessment.Sources = append(shown.assessment.Sources, updatev1beta1.Source{Name: name, Message: "no answer in time"})
	}
	got := runStatus(t, clitest.NewFakeCluster(t, updateStatus(shown), clitest.Lease(0)).Cluster, statusOptions{}, "")
	for _, want := range []string{"\nMissing     alerts, machine configs: no answer in time\n", "\nData        6 of 6 sources"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("%q is not on the screen:\n%s", want, got.Out)
		}
	}
	if got.Code != session.ExitProgressing {
		t.Errorf("exit code %d", got.Code)
	}
}

func TestStatus_without_the_controller(t *testing.T) {
	t.Parallel()
	noKinds := func(kind string) error {
		if strings.HasPrefix(kind, "Update") {
			return clitest.NoMatch(kind)
		}
		return nil
	}
	tests := map[string]struct {
		err  func(string) error
		code session.ExitCode
		want []string
	}{
		"all is read":             {nil, session.ExitDone, []string{"UP TO DATE 4.20.6 since 2026-11-14 03:12 UTC (8d).", "Read just now; Update Status Controller is not installed."}},
		"nodes are forbidden":     {clitest.ErrorOf("Node", clitest.Forbidden()), session.ExitUnknown, []string{"UNKNOWN", "nodes: you are not allowed to list them"}},
		"operators are forbidden": {clitest.ErrorOf("ClusterOperator", clitest.Forbidden()), session.ExitUnknown, []string{"UNKNOWN", "operators: you are not allowed to list them"}},
		"pools are unavailable":   {clitest.ErrorOf("MachineConfigPool", clitest.Unavailable()), session.ExitUnknown, []string{"UNKNOWN", "pools: overloaded"}},
		"no ClusterVersion":       {clitest.ErrorOf("ClusterVersion", clitest.NotFound()), session.ExitUnknown, []string{"UNKNOWN", "ClusterVersion:"}},
		"no ClusterVersion kind":  {clitest.ErrorOf("ClusterVersion", clitest.NoMatch("ClusterVersion")), session.ExitUnknown, []string{"UNKNOWN", "ClusterVersion:"}},
		"budgets are forbidden":   {clitest.ErrorOf("PodDisruptionBudget", clitest.Forbidden()), session.ExitDone, []string{"UP TO DATE", "disruption budgets: you are not allowed to list them"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clitest.NewFakeCluster(t)
			cluster.Err = func(kind string) error {
				if err := noKinds(kind); err != nil || test.err == nil {
					return err
				}
				return test.err(kind)
			}
			got := runStatus(t, cluster.Cluster, statusOptions{}, "")
			if got.Code != test.code {
				t.Errorf("exit code %d, want %d:\n%s", got.Code, test.code, got.Out)
			}
			for _, want := range test.want {
				if !strings.Contains(strings.Join(strings.Fields(got.Out), " "), want) {
					t.Errorf("the screen lacks %q:\n%s", want, got.Out)
				}
			}
			if lists := countLists(cluster.Requests); lists > maxLists {
				t.Errorf("%d lists, want at most %d: %q", lists, maxLists, cluster.Requests)
			}
		})
	}
}

func TestStatus_fails_if_the_cluster_cannot_be_reached(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"no connection": errors.New("connection refused"), "unauthorized": apierrors.NewUnauthorized("x")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clitest.NewFakeCluster(t)
			cluster.Err = func(string) error { return err }
			if got := runStatus(t, cluster.Cluster, statusOptions{}, ""); got.Code != session.ExitFailed || got.Out != "" || len(cluster.Requests) != 1 {
				t.Errorf("exit code %d after %q, want 1 after one request:\n%s", got.Code, cluster.Requests, got.Out)
			}
		})
	}
}

func TestVerdicts_have_exit_codes(t *testing.T) {
	t.Parallel()
	for state, want := range map[updatev1beta1.AssessmentState]session.ExitCode{
		updatev1beta1.StateIdle: session.ExitDone, updatev1beta1.StateProgressing: session.ExitProgressing, updatev1beta1.StateWaiting: session.ExitWaiting,
		updatev1beta1.StateStuck: session.ExitActionRequired, updatev1beta1.StateUnknown: session.ExitUnknown, "Other": session.ExitUnknown,
	} {
		object := &updatev1beta1.UpdateStatus{Status: updatev1beta1.UpdateStatusStatus{Assessment: &updatev1beta1.Assessment{State: state}}}
		if got := verdict(snapshot{object: object}); got != want {
			t.Errorf("state %s: exit code %d, want %d", state, got, want)
		}
	}
	paused := &updatev1beta1.UpdateStatus{Status: updatev1beta1.UpdateStatusStatus{Assessment: &updatev1beta1.Assessment{State: updatev1beta1.StateWaiting, ActionRequired: true}}}
	if got := verdict(snapshot{object: paused}); got != session.ExitActionRequired {
		t.Errorf("a wait that a person ends: exit code %d, want %d", got, session.ExitActionRequired)
	}
	if got := verdict(snapshot{object: &updatev1beta1.UpdateStatus{}}); got != session.ExitUnknown {
		t.Errorf("no assessment: exit code %d, want %d", got, session.ExitUnknown)
	}
}

func TestStatus_prints_the_object(t *testing.T) {
	t.Parallel()
	cluster := clitest.NewFakeCluster(t, updateStatus(stuckDrainScreen()), clitest.Lease(0))
	cluster.Err = clitest.ErrorOf("ClusterVersion", nil)
	got := runStatus(t, cluster.Cluster, statusOptions{}, "json")
	var object updatev1beta1.UpdateStatus
	if err := json.Unmarshal([]byte(got.Out), &object); err != nil {
		t.Fatal(err)
	}
	if object.Kind != "UpdateStatus" || object.APIVersion != "config.openshift.io/v1beta1" || object.Status.Assessment.State != updatev1beta1.StateStuck || got.Code != session.ExitActionRequired {
		t.Errorf("exit code %d, object:\n%s", got.Code, got.Out)
	}
	if got := runStatus(t, cluster.Cluster, statusOptions{}, "name"); got.Out != "updatestatus.config.openshift.io/cluster\n" {
		t.Errorf("name %q", got.Out)
	}
}

func TestStatus_waits_for_informers(t *testing.T) {
	t.Parallel()
	waiting := progressingScreen()
	waiting.assessment.Release = "4.20.6"
	waiting.assessment.Sources[5] = updatev1beta1.Source{Name: "informer mco-update-informer", Message: "no answer"}
	updating := &updatev1beta1.UpdateInformer{ObjectMeta: metav1.ObjectMeta{Name: "mco-update-informer"}}
	updating.Status.Conditions = []updatev1beta1.InformerCondition{{
		Type: updatev1beta1.ConditionOnline, Status: metav1.ConditionFalse, Reason: updatev1beta1.ReasonInformerUpdating,
		LastHeartbeatTime: new(metav1.NewTime(clitest.Now)), LastTransitionTime: metav1.NewTime(clitest.Now),
	}}
	for name, tc := range map[string]struct {
		wait    time.Duration
		objects []client.Object
		want    int
	}{
		"not by default": {0, nil, 1}, "as long as --wait": {12 * time.Second, nil, 4},
		"two minutes for one that updates itself": {0, []client.Object{updating}, 25},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wait, want := tc.wait, tc.want
			cluster := clitest.NewFakeCluster(t, append(tc.objects, updateStatus(waiting), clitest.Lease(0))...)
			clock := clocktesting.NewFakeClock(clitest.Now)
			p := session.New(session.Environment{Clock: clock, Terminal: &screen.Terminal{}, Streams: genericiooptions.NewTestIOStreamsDiscard()})
			done := make(chan error)
			go func() {
				_, err := (&statusOptions{Session: p, wait: wait, namespace: session.ControllerNamespace}).await(t.Context(), cluster.Cluster)
				done <- err
			}()
			for {
				select {
				case err := <-done:
					if reads := strings.Count(strings.Join(cluster.Requests, ","), "UpdateStatus"); err != nil || reads != want {
						t.Errorf("error %v, %d reads, want %d", err, reads, want)
					}
					return
				default:
					if clock.HasWaiters() {
						clock.Step(session.PollInterval)
					}
				}
			}
		})
	}
}

// The printed command about the controller uses the namespace given by the user.
func TestStatus_names_the_namespace_of_the_controller(t *testing.T) {
	t.Parallel()
	cluster := clitest.NewFakeCluster(t)
	cluster.Err = func(kind string) error {
		if kind == "Node" {
			return clitest.Unavailable()
		}
		return nil
	}
	s, err := readStatus(t.Context(), cluster.Cluster, "upgrades", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"oc -n upgrades get pods"}
	if remedy := s.object.Status.Assessment.Remedy; remedy == nil || !cmp.Equal(want, remedy.Commands) {
		t.Errorf("remedy %+v, want %q", remedy, want)
	}
}
