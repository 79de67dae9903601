// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

// The number of actions in a history, and how long it may take to come to rest after the last one.
const (
	minActions  = 8
	maxActions  = 40
	restTimeout = 14 * time.Hour
)

// Report is the result of a history.
type Report struct {
	Seed    uint64
	Kind    Kind
	Actions int
	// Writes is the number of checked changes.
	Writes int
	// Progress that the history has reached.
	Commit, Workers, Cleanup, Deletion bool
	// Interleaved reports whether requests of two leaders were interleaved.
	Interleaved bool
	// Violations are the violated invariants in the order of detection.
	Violations []string
	// Log contains a line for each action, change, and fault.
	Log []string
}

// runner is a running history of one cluster.
type runner struct {
	*driver
	kind    Kind
	cluster *openshift.Cluster
	config  config.Config
	checker *checker

	once     hooks
	receiver receiver
	backup   *simulation.Backup
	registry *prometheus.Registry // of the newest life; nil if nothing reads its metrics

	backupVersion   string    // cluster version in the backup
	backupRequester requester // of the request in the backup

	race *race // of two leaders; nil if there is none
}

// hooks are actions that wait for a point in an upgrade. They run a few seconds after it.
type hooks struct {
	requested, commenced, failed func()
	// completed runs when the control plane is at a new version but the nodes are not.
	completed func()
	// started runs when the first step of an upgrade starts.
	started func(*upgradev1alpha1.UpgradeConfig)
	// ended runs when an upgrade ends.
	ended func(client.ObjectKey)
	// sent runs within a second after the request: before the requesting process saves its result, or
	// soon after.
	sent func()
	// atRequest runs a second after the request, long before the cluster version operator accepts it.
	atRequest func()
	// locked runs between the acquisition of the lock and the operator's next write. That write then
	// conflicts.
	locked func()
	// lockWritten reports whether the last write was to the lock.
	lockWritten bool
}

// soonAfter runs an action that was waiting for this point, once.
func (h *runner) soonAfter(hook *func()) {
	if do := *hook; do != nil && !h.calm {
		*hook = nil
		h.afterUnlessCalm(h.upTo(20*time.Second), func() {
			h.world.Logf("action: the one that has waited")
			do()
		})
	}
}

// Run runs the history with a seed and a kind of upgrades.
func Run(seed uint64, kind Kind) Report {
	return run(seed, kind, 0)
}

// run runs a history with a given number of actions from the start of the list, or with all of them
// if it is 0. Seeds that were kept specify how many actions existed at the time.
func run(seed uint64, kind Kind, actions int) (report Report) {
	report.Seed, report.Kind = seed, kind
	defer func() {
		if r := recover(); r != nil {
			report.Violations = append(report.Violations, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
		}
	}()
	d := newDriver(seed, &report)
	h, err := newHistory(d, kind)
	if err != nil {
		report.Violations = append(report.Violations, "setup: "+err.Error())
		return report
	}
	h.run(actions)
	return report
}

// newHistory returns a history of the given kind.
func newHistory(d *driver, kind Kind) (interface{ run(actions int) }, error) {
	if kind == ManagedClustersUpgrades {
		return newFleet(d)
	}
	return newRunner(d, kind)
}

func newRunner(d *driver, kind Kind) (*runner, error) {
	definitions, err := openshift.Definitions()
	if err != nil {
		return nil, err
	}
	h := &runner{driver: d, kind: kind, config: config.Default()}
	h.world = simulation.New(simulation.WorldOptions{
		Definitions: definitions,
		Log:         func(line string) { d.report.Log = append(d.report.Log, line) },
	})
	if h.cluster, err = openshift.New(h.world, h.spec()); err != nil {
		return nil, err
	}
	h.people = h.cluster.Client
	if err := h.addWorkloads(); err != nil {
		return nil, err
	}
	h.checker = newChecker(h)
	h.world.Observe(h.checker.observe)
	h.receiver.steps, h.receiver.tell = map[string]bool{}, h.checker.tell
	h.program = OperatorWithWebhook(h.cluster, h.config, h.newWebhook)
	if kind == UpgradeJobs {
		h.program = wholeOperator(h.cluster, h.config, h.newWebhook, h.newRegistry)
	}
	h.program.Plan = h.plan
	h.program.OnCrash = func() { h.restartAfter(h.upTo(30 * time.Second)) }
	return h, h.startLeader()
}

// spec describes a small cluster with a random shape.
func (h *runner) spec() openshiftsim.ClusterSpec {
	takes := func() timescale.Duration { return timescale.Duration(time.Minute + h.upTo(8*time.Minute)) }
	spec := openshiftsim.ClusterSpec{
		Version: installed, Channel: channel, Masters: 1, Workers: 1 + h.random.IntN(2),
		Operators: []cvo.OperatorSpec{{Name: "etcd", Takes: takes()}, {Name: "network", Takes: takes()}},
	}
	for _, version := range []string{"4.20.6", "4.20.7", "4.21.0"} {
		release := updategraph.Release{Version: version, Channels: []string{channel, "fast-4.20"}}
		if h.random.IntN(12) == 0 {
			release.Refused = "Unable to download and prepare the update: manifest unknown"
		}
		spec.Releases = append(spec.Releases, release)
	}
	return spec
}

// Releases and channels of the histories.
const (
	installed = "4.20.5"
	channel   = "stable-4.20"
)

func (h *runner) run(actions int) {
	first, create, all := "create an upgrade", h.createUpgrade, upgradeConfigActions()
	if h.kind == UpgradeJobs {
		first, create, all = "create an UpgradeJob", h.createJob, jobActions()
	}
	if play(h.driver, h, first, create, firstOf(all, actions)) { // all failures end, and everything finishes
		h.act("calm down", h.calmDown)
		h.settle(h.restLimit(), h.checker.unrest)
	}
}

// restLimit returns how long it may take until everything has finished. A retry of an UpgradeJob
// that was requested while the clock was a day ahead starts a day later.
func (h *runner) restLimit() time.Duration {
	if h.kind == UpgradeJobs && h.clockStepped {
		return restTimeout + 24*time.Hour
	}
	return restTimeout
}

func (h *runner) newRegistry() *prometheus.Registry {
	h.registry = prometheus.NewRegistry()
	return h.registry
}

// plan determines the outcome of an operator request.
func (h *runner) plan(r simulation.Request) simulation.Fault {
	h.pull(r)
	if r.IsWrite() && h.afterLock(r) {
		return simulation.Fault{Outcome: simulation.Conflict}
	}
	if suspended := h.race.schedule(r, h.checker.lease); suspended > 0 && !h.calm {
		h.report.Interleaved = true
		return simulation.Fault{Outcome: simulation.Stall, For: suspended}
	}
	return h.fault(r, []string{"UpgradeConfig", "ClusterVersion", "Lease", "Node", "MachineConfigPool"})
}

// afterLock runs the action that waits for the lock to be acquired if this is the next request.
func (h *runner) afterLock(r simulation.Request) bool {
	written := h.once.lockWritten
	h.once.lockWritten = r.Kind == "Lease"
	if !written || h.once.locked == nil || h.calm {
		return false
	}
	do := h.once.locked
	h.once.locked = nil
	do()
	return true
}

// upgradeConfig returns an upgrade that is likely to succeed.
func (h *runner) upgradeConfig(key client.ObjectKey) *upgradev1alpha1.UpgradeConfig {
	cfg := &upgradev1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: upgradev1alpha1.UpgradeConfigSpec{
			Type: []string{"OSD", "ARO"}[h.random.IntN(2)], UpgradeAt: h.soon(), PDBForceDrainTimeout: new(int32(h.random.IntN(60))),
			Desired: upgradev1alpha1.Update{Version: "4.20.6", Channel: channel},
		},
	}
	if h.random.IntN(3) == 0 {
		cfg.Spec.CapacityReservation = new(true)
	}
	return cfg
}

// soon returns a start time in the near future, in the format of upgradeAt.
func (h *runner) soon() string {
	return h.world.Now().Add(h.upTo(12 * time.Minute)).UTC().Format(time.RFC3339)
}
