// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package ocm_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/invariants"
)

// hubUser is the user of our hub program.
const hubUser = "system:serviceaccount:" + ocm.HubNamespace + ":" + ocm.HubServiceAccount

// rollout is an upgrade of a fleet by the real binary. Every status is checked.
type rollout struct {
	t       testing.TB
	fleet   *ocm.Fleet
	hub     *ocm.Hub
	upgrade *fleetv1beta1.ManagedClustersUpgrade

	invariants invariants.Fleet

	mu        sync.Mutex
	name      string                                       // of the observed upgrade
	hasCanary bool                                         // the canary is the first cluster
	largest   int                                          // size of the object in bytes
	began     []string                                     // clusters in the order of their admission, once per attempt
	states    map[string]fleetv1alpha1.ClusterUpgradeState // by cluster
	status    fleetv1beta1.ManagedClustersUpgradeStatus    // the last one
	runs      map[string]*fleetv1alpha1.ClusterUpgradeRun  // by cluster
}

func newRollout(tb testing.TB, spec ocm.Spec, change func(*fleetv1beta1.ManagedClustersUpgrade)) *rollout {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute+time.Duration(spec.Clusters)*100*time.Millisecond)
	defer cancel()
	r := &rollout{t: tb, fleet: startFleet(ctx, tb, spec)}
	hub, err := r.fleet.StartHub(ctx)
	must(tb, err)
	r.hub = hub
	tb.Cleanup(func() {
		if err := r.hub.Stop(); err != nil {
			tb.Error(err)
		}
		if log, err := os.ReadFile(r.fleet.Path("logs", "hub.log")); err == nil && tb.Failed() {
			tb.Logf("the end of the log of the hub:\n%s", log[max(0, len(log)-8000):])
		}
	})
	r.upgrade, err = ocm.NewUpgrade()
	must(tb, err)
	change(r.upgrade)
	r.watch()
	return r
}

// start creates an upgrade and observes it instead of the previous one.
func (r *rollout) start(upgrade *fleetv1beta1.ManagedClustersUpgrade) {
	r.t.Helper()
	r.read(func() {
		r.hasCanary = r.fleet.Spec().Canaries == 1 && upgrade.Spec.UpgradeStrategy.CanaryClusters != nil
		r.name, r.began, r.status = upgrade.Name, nil, fleetv1beta1.ManagedClustersUpgradeStatus{}
		r.states, r.runs = map[string]fleetv1alpha1.ClusterUpgradeState{}, map[string]*fleetv1alpha1.ClusterUpgradeRun{}
	})
	r.upgrade = upgrade
	must(r.t, r.fleet.Client.Create(r.t.Context(), upgrade))
}

// watch observes the upgrade and its runs until the test ends.
func (r *rollout) watch() {
	r.t.Helper()
	upgrades, err := r.fleet.Client.Watch(r.t.Context(), &fleetv1beta1.ManagedClustersUpgradeList{})
	must(r.t, err)
	runs, err := r.fleet.Client.Watch(r.t.Context(), &fleetv1alpha1.ClusterUpgradeRunList{})
	must(r.t, err)
	var group sync.WaitGroup
	group.Go(func() {
		for event := range upgrades.ResultChan() {
			if upgrade, is := event.Object.(*fleetv1beta1.ManagedClustersUpgrade); is {
				r.observe(upgrade)
			}
		}
	})
	group.Go(func() {
		for event := range runs.ResultChan() {
			run, is := event.Object.(*fleetv1alpha1.ClusterUpgradeRun)
			switch {
			case is && event.Type == watch.Deleted:
				r.invariants.RunDeleted(run)
			case is:
				r.observeRun(run)
			}
		}
	})
	r.t.Cleanup(func() {
		upgrades.Stop()
		runs.Stop()
		group.Wait()
	})
}

// observe checks the invariants of a status.
func (r *rollout) observe(upgrade *fleetv1beta1.ManagedClustersUpgrade) {
	if err := r.invariants.Upgrade(upgrade); err != nil {
		r.t.Errorf("ManagedClustersUpgrade %s: %v", upgrade.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if upgrade.Name != r.name {
		return
	}
	r.status = upgrade.Status
	encoded, err := json.Marshal(upgrade)
	if r.largest = max(r.largest, len(encoded)); err != nil {
		r.t.Error(err)
	}
}

// observeRun records the order in which clusters start. No cluster may start before the canary is
// complete.
func (r *rollout) observeRun(run *fleetv1alpha1.ClusterUpgradeRun) {
	if err := r.invariants.Run(run); err != nil {
		r.t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if run.Spec.ManagedClustersUpgrade.Name != r.name {
		return
	}
	canary := ocm.ClusterName(1)
	if invariants.Begins(r.runs[run.Namespace], run) {
		r.began = append(r.began, run.Namespace)
		if r.hasCanary && run.Namespace != canary && r.states[canary] != fleetv1alpha1.StateComplete {
			r.t.Errorf("%s begins while the canary is %q", run.Namespace, r.states[canary])
		}
	}
	r.states[run.Namespace] = run.Status.State
	r.runs[run.Namespace] = run
}

// read gives a function access to the observed state.
func (r *rollout) read(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// await waits until the counters of the last status satisfy the condition.
func (r *rollout) await(what string, is func(c fleetv1beta1.ClustersSummary) bool) {
	r.t.Helper()
	await(r.t, what, func(context.Context) (holds bool) {
		r.read(func() { holds = r.status.ClustersSummery != nil && is(*r.status.ClustersSummery) })
		return holds
	})
}

// edit changes the spec of the upgrade.
func (r *rollout) edit(change func(*fleetv1beta1.ManagedClustersUpgradeSpec)) {
	r.t.Helper()
	current := &fleetv1beta1.ManagedClustersUpgrade{}
	must(r.t, r.fleet.Client.Get(r.t.Context(), client.ObjectKeyFromObject(r.upgrade), current))
	before := current.DeepCopy()
	change(&current.Spec)
	must(r.t, r.fleet.Client.Patch(r.t.Context(), current, client.MergeFrom(before)))
}

// pauseLimit is the maximum time from a pause to the last admission.
const pauseLimit = 2 * time.Second

// request is a request of the hub in the audit log.
type request struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Namespace   string `json:"namespace"`
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	URI      string `json:"requestURI"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
}

// requests returns the requests of the hub since a time: watches as soon as the response has
// started, other requests when it is complete.
func (r *rollout) requests(since time.Time) []request {
	r.t.Helper()
	file, err := os.Open(r.fleet.AuditLog())
	must(r.t, err)
	defer file.Close()
	var found []request
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return found // the last line is still being written
		}
		var one request
		must(r.t, json.Unmarshal(line, &one))
		if one.User.Username == hubUser && (one.Stage == "ResponseComplete") != (one.Verb == "watch") && !one.Received.Before(since) {
			found = append(found, one)
		}
	}
}

func (q *request) writes() bool {
	return q.Verb == "create" || q.Verb == "patch" || q.Verb == "update" || q.Verb == "delete"
}

// createsUpgrade reports whether the request created the work that upgrades a cluster's platform.
func (q *request) createsUpgrade() bool {
	return q.Verb == "create" && q.Object.Resource == "manifestworks" && q.Object.Name == delivery.UpgradeName(q.Object.Namespace) && q.Response.Code == http.StatusCreated
}

// TestRollout upgrades a fleet with the real binary: the canary, a failure, a pause, a hub that is
// killed, a retry, and the deletion. It uses the commands of our plugin.
func TestRollout(t *testing.T) {
	t.Parallel()
	r := newRollout(t, ocm.Spec{Clusters: 12, Canaries: 1, Groups: 2, Duration: 3 * time.Second, Interval: 500 * time.Millisecond},
		func(u *fleetv1beta1.ManagedClustersUpgrade) {
			u.Spec.UpgradeStrategy.MinSuccessTime, u.Spec.DryRun = "1s", true
		})
	failing := ocm.ClusterName(5)
	must(t, r.fleet.Degrade(t.Context(), failing))
	r.start(r.upgrade)

	t.Log("a dry run does not know whether the release is offered, and begins no cluster")
	await(t, "all clusters are checked", func(context.Context) (checked bool) {
		r.read(func() {
			checked = apimeta.IsStatusConditionFalse(r.status.Conditions, fleetv1beta1.ConditionPreflightPassed)
		})
		return checked
	})
	if plan := r.command(t, 30, "plan"); !regexp.MustCompile(`BLOCKED +12 +12 +it is in channel stable`).MatchString(plan) {
		t.Errorf("the plan:\n%s", plan)
	}
	r.read(func() {
		if len(r.began) > 0 {
			t.Errorf("%v have begun in a dry run", r.began)
		}
	})
	r.command(t, 0, "start", "-y")

	t.Log("the hub is killed while clusters are in flight")
	r.await("clusters are in flight", func(c fleetv1beta1.ClustersSummary) bool { return c.Complete >= 1 && c.PartialUpgrade >= 2 })
	must(t, r.hub.Kill())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, r.hub.Start(ctx))

	t.Log("a pause admits no other cluster")
	r.await("more clusters are complete", func(c fleetv1beta1.ClustersSummary) bool { return c.Complete >= 3 })
	r.command(t, 0, "pause", "-y")
	paused := time.Now()
	await(t, "the pause is observed", func(context.Context) (observed bool) {
		r.read(func() {
			admitting := apimeta.FindStatusCondition(r.status.Conditions, fleetv1beta1.ConditionAdmitting)
			observed = admitting != nil && admitting.Reason == fleetv1beta1.ReasonPaused
		})
		return observed
	})
	r.await("what was delivered has ended", func(c fleetv1beta1.ClustersSummary) bool { return c.PartialUpgrade+c.Finishing == 0 })
	r.read(func() {
		for name, run := range r.runs {
			if run.Spec.AdmissionTime.After(paused.Add(pauseLimit)) {
				t.Errorf("%s has begun more than %s after the pause", name, pauseLimit)
			}
		}
		if len(r.began) == 12 {
			t.Error("no cluster was left when the upgrade was paused")
		}
	})
	r.command(t, 0, "resume", "-y")

	t.Log("one cluster fails, in the words of its cluster version operator")
	r.await("all others are complete", func(c fleetv1beta1.ClustersSummary) bool { return c.Complete == 11 && c.Failed == 1 })
	r.read(func() {
		if run := r.runs[failing]; run.Status.State != fleetv1alpha1.StateFailed || !strings.Contains(run.Status.Message, "etcd is degraded") {
			t.Errorf("the run of the cluster that fails: %+v", run.Status)
		}
		if len(r.status.Causes) != 1 || r.status.Causes[0].Clusters[0] != failing {
			t.Errorf("causes %+v", r.status.Causes)
		}
	})

	t.Log("a retry completes it")
	must(t, r.fleet.Repair(t.Context(), failing))
	r.command(t, 0, "retry", "-y")
	r.await("all are complete", func(c fleetv1beta1.ClustersSummary) bool { return c.Complete == 12 })
	r.checkWorks(t)

	t.Log("then the hub is quiet")
	await(t, "the works are gone", func(ctx context.Context) bool {
		var works workv1.ManifestWorkList
		return r.fleet.Client.List(ctx, &works) == nil && len(works.Items) == 0
	})
	gone := time.Now()
	await(t, "the hub writes nothing for 5 s", func(context.Context) bool {
		since := time.Now().Add(-5 * time.Second)
		return since.After(gone) && !slices.ContainsFunc(r.requests(since), func(q request) bool { return q.writes() })
	})

	r.command(t, 0, "cancel", "-y")
	cancelled := &fleetv1beta1.ManagedClustersUpgrade{}
	must(t, r.fleet.Client.Get(t.Context(), client.ObjectKeyFromObject(r.upgrade), cancelled))
	if !cancelled.Spec.Cancelled {
		t.Error("the upgrade is not cancelled")
	}
	r.delete(t)
	r.checkPermissions(t, "hub")
}

// checkWorks checks that each cluster received the work for its platform once. A failed cluster
// that completes late, before its retry starts, gets another work with the retry, because the first
// attempt removed its own when it ended.
func (r *rollout) checkWorks(t *testing.T) {
	t.Helper()
	created, attempts := map[string]int{}, map[string]int{}
	for _, q := range r.requests(time.Time{}) {
		if q.createsUpgrade() {
			created[q.Object.Namespace]++
		}
	}
	r.read(func() {
		for _, name := range r.began {
			attempts[name]++
		}
	})
	for number := 1; number <= 12; number++ {
		if name := ocm.ClusterName(number); created[name] < 1 || created[name] > attempts[name] {
			t.Errorf("%s got %d works in %d attempts", name, created[name], attempts[name])
		}
	}
}

// delete deletes the upgrade and checks that no run, work, or lock is left.
func (r *rollout) delete(t *testing.T) {
	t.Helper()
	must(t, r.fleet.Client.Delete(t.Context(), r.upgrade))
	if r.fleet.Spec().Real { // without a controller manager, there is no garbage collection
		await(t, "its Placement is gone", func(ctx context.Context) bool {
			var placements ocmv1beta1.PlacementList
			return r.fleet.Client.List(ctx, &placements) == nil && len(placements.Items) == 0
		})
	}
	await(t, "the upgrade is gone with its runs, works, and locks", func(ctx context.Context) bool {
		var runs fleetv1alpha1.ClusterUpgradeRunList
		var works workv1.ManifestWorkList
		var leases coordinationv1.LeaseList
		for _, list := range []client.ObjectList{&runs, &works, &leases} {
			if r.fleet.Client.List(ctx, list) != nil {
				return false
			}
		}
		locks := 0
		for i := range leases.Items {
			if strings.HasPrefix(leases.Items[i].Name, lock.Name) {
				locks++
			}
		}
		gone := r.fleet.Client.Get(ctx, client.ObjectKeyFromObject(r.upgrade), &fleetv1beta1.ManagedClustersUpgrade{}) != nil
		return gone && len(runs.Items) == 0 && len(works.Items) == 0 && locks == 0
	})
}
