// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/updategraph"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

// The number of actions of a history, and how long it may take to come to rest after the last one.
const (
	minActions  = 8
	maxActions  = 40
	restTimeout = 14 * time.Hour
)

// Report is what a history has come to.
type Report struct {
	Seed    uint64
	Kind    Kind
	Actions int
	// Writes is the number of stored changes that were checked.
	Writes int
	// What the history has reached.
	Commit, Workers, Cleanup, Deletion bool
	// Violations are the invariants that did not hold, in the order of their detection.
	Violations []string
	// Log has a line for each action, change, and fault.
	Log []string
}

// runner is a history that is running.
type runner struct {
	seed    uint64
	kind    Kind
	actions []action // that there are
	random  *rand.Rand
	world   *simulation.World
	cluster *openshift.Cluster
	program *simulation.Program
	leaders []*simulation.Process
	config  config.Config
	report  *Report
	checker *checker

	faultRate  float64 // the share of requests that fail in some way
	faultUntil time.Time
	trigger    *trigger
	once       hooks
	calm       bool // nothing fails any more
	receiver   receiver
	backup     *simulation.Backup
	registry   *prometheus.Registry // of the newest life; nil means that nothing reads its metrics

	backupVersion string // of the cluster in the backup
}

// trigger is an action that comes right before a request of the operator.
type trigger struct {
	write int // after this many writes from now
	do    func()
}

// hooks are actions that wait for a moment of an upgrade. They come some seconds after it.
type hooks struct {
	requested, commenced, failed func()
	// completed comes when the control plane is at a new version, before the nodes are.
	completed func()
	// started comes when the first step of an upgrade begins.
	started func(*v1alpha1.UpgradeConfig)
	// ended comes when an upgrade ends.
	ended func(client.ObjectKey)
	// atRequest comes a second after the request: long before the cluster version operator accepts it.
	atRequest func()
	// locked comes between the acquisition of the lock and the next write of the operator, which then
	// conflicts.
	locked func()
	// lockWritten reports that the lock was written last.
	lockWritten bool
}

// soonAfter runs an action that has waited for this moment, once.
func (h *runner) soonAfter(hook *func()) {
	if do := *hook; do != nil && !h.calm {
		*hook = nil
		h.world.After(h.upTo(20*time.Second), func() {
			h.world.Logf("action: the one that has waited")
			do()
		})
	}
}

// Run runs the history of a seed with upgrades of that kind.
func Run(seed uint64, kind Kind) Report {
	return run(seed, kind, actionsOf(kind))
}

// run runs the history of a seed with these actions.
func run(seed uint64, kind Kind, actions []action) (report Report) {
	report.Seed, report.Kind = seed, kind
	defer func() {
		if r := recover(); r != nil {
			report.Violations = append(report.Violations, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
		}
	}()
	h, err := newRunner(seed, kind, actions, &report)
	if err != nil {
		report.Violations = append(report.Violations, "setup: "+err.Error())
		return report
	}
	h.run()
	return report
}

func newRunner(seed uint64, kind Kind, actions []action, report *Report) (*runner, error) {
	definitions, err := openshift.Definitions()
	if err != nil {
		return nil, err
	}
	h := &runner{seed: seed, kind: kind, actions: actions, random: rand.New(rand.NewPCG(seed, 1)), report: report, config: config.Default()} //nolint:gosec // a history, not a secret
	h.world = simulation.New(simulation.Options{
		Definitions: definitions,
		Log:         func(line string) { report.Log = append(report.Log, line) },
	})
	if h.cluster, err = openshift.New(h.world, h.spec()); err != nil {
		return nil, err
	}
	if err := h.addWorkloads(); err != nil {
		return nil, err
	}
	h.checker = newChecker(h)
	h.world.Observe(h.checker.observe)
	h.receiver.steps = map[string]bool{}
	h.program = OperatorWithWebhook(h.cluster, h.config, h.newWebhook)
	if kind == UpgradeJobs {
		h.program = wholeOperator(h.cluster, h.config, h.newWebhook, h.newRegistry)
	}
	h.program.Plan = h.plan
	h.program.OnCrash = func() { h.restartAfter(h.upTo(30 * time.Second)) }
	return h, h.startLeader()
}

// spec describes a small cluster of random shape.
func (h *runner) spec() devcluster.Spec {
	takes := func() timescale.Duration { return timescale.Duration(time.Minute + h.upTo(8*time.Minute)) }
	spec := devcluster.Spec{
		Version: installed, Channel: channel, Masters: 1, Workers: 1 + h.random.IntN(2),
		Operators: []cvo.Operator{{Name: "etcd", Takes: takes()}, {Name: "network", Takes: takes()}},
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

// The releases and channels of the histories.
const (
	installed = "4.20.5"
	channel   = "stable-4.20"
)

func (h *runner) run() {
	h.report.Actions = minActions + h.random.IntN(maxActions-minActions+1)
	if h.kind == UpgradeJobs {
		h.act("create an UpgradeJob", h.createJob)
	} else {
		h.act("create an upgrade", h.createUpgrade)
	}
	for range h.report.Actions - 1 {
		if !h.wait(h.pause()) {
			return
		}
		a := h.choose()
		h.act(a.name, func() { a.do(h) })
	}
	if h.wait(h.pause()) {
		h.rest()
	}
}

func (h *runner) act(name string, do func()) {
	h.world.Logf("action: %s", name)
	do()
}

// pause returns how long it takes to the next action: often moments, sometimes most of an hour.
func (h *runner) pause() time.Duration {
	switch h.random.IntN(10) {
	case 0, 1:
		return h.upTo(2 * time.Second)
	case 2, 3, 4:
		return h.upTo(time.Minute)
	case 5, 6, 7, 8:
		return h.upTo(6 * time.Minute)
	default:
		return h.upTo(40 * time.Minute)
	}
}

// wait lets time pass, and reports whether the history goes on.
func (h *runner) wait(d time.Duration) bool {
	if err := h.world.RunFor(d); err != nil {
		h.violate("run: %v", err)
	}
	return len(h.report.Violations) == 0
}

// rest ends all failures and waits until everything has come to its end.
func (h *runner) rest() {
	h.act("calm down", h.calmDown)
	err := h.world.RunUntil(h.restLimit(), func() bool { return len(h.report.Violations) > 0 || h.checker.atRest() })
	if len(h.report.Violations) > 0 {
		return
	}
	if err != nil {
		h.violate("rest: %v: %s", err, h.checker.unrest())
		return
	}
	if h.wait(10*time.Minute) && !h.checker.atRest() {
		h.violate("rest: %s", h.checker.unrest())
	}
}

// restLimit returns how long it may take until everything has come to its end. The retry of an
// UpgradeJob that was requested while the clock was a day ahead starts a day later.
func (h *runner) restLimit() time.Duration {
	if h.kind == UpgradeJobs && h.checker.clockStepped {
		return restTimeout + 24*time.Hour
	}
	return restTimeout
}

func (h *runner) violate(format string, args ...any) {
	text := h.world.Now().UTC().Format(time.TimeOnly) + " " + fmt.Sprintf(format, args...)
	h.world.Logf("VIOLATION: %s", text)
	h.report.Violations = append(h.report.Violations, text)
}

// upTo returns a random duration.
func (h *runner) upTo(d time.Duration) time.Duration {
	return time.Duration(h.random.Int64N(int64(d))).Truncate(time.Millisecond)
}

func (h *runner) startLeader() error {
	process, err := h.world.Start(h.program)
	if err == nil {
		h.leaders = append(h.leaders, process)
	}
	return err
}

func (h *runner) newRegistry() *prometheus.Registry {
	h.registry = prometheus.NewRegistry()
	return h.registry
}

func (h *runner) restartAfter(d time.Duration) {
	h.world.After(d, func() {
		if h.leader() != nil {
			return
		}
		if err := h.startLeader(); err != nil {
			h.violate("restart: %v", err)
		}
	})
}

// leader returns the newest process that is alive; nil if there is none.
func (h *runner) leader() *simulation.Process {
	for _, leader := range slices.Backward(h.leaders) {
		if leader.Alive() {
			return leader
		}
	}
	return nil
}

// plan decides what becomes of a request of the operator.
func (h *runner) plan(r simulation.Request) simulation.Fault {
	if r.IsWrite() && h.trigger != nil {
		if h.trigger.write--; h.trigger.write <= 0 {
			do := h.trigger.do
			h.trigger = nil
			do()
		}
	}
	if r.IsWrite() && h.afterLock(r) {
		return simulation.Fault{Outcome: simulation.Conflict}
	}
	if h.calm || h.faultRate == 0 || h.world.Now().After(h.faultUntil) || h.random.Float64() >= h.faultRate {
		return simulation.Fault{}
	}
	if !r.IsWrite() {
		if r.Cached { // a cache answers always
			return simulation.Fault{}
		}
		return simulation.Fault{Outcome: simulation.Refuse, Err: apierrors.NewServiceUnavailable("simulated")}
	}
	switch h.random.IntN(8) {
	case 0, 1:
		return simulation.Fault{Outcome: simulation.Refuse}
	case 2:
		return simulation.Fault{Outcome: simulation.Conflict}
	case 3:
		return simulation.Fault{Outcome: simulation.LoseAnswer}
	case 4:
		return simulation.Fault{Outcome: simulation.CrashBefore}
	case 5:
		return simulation.Fault{Outcome: simulation.CrashAfter}
	case 6:
		return simulation.Fault{Outcome: simulation.Stall, For: h.upTo(20 * time.Second)}
	default:
		kinds := []string{"UpgradeConfig", "ClusterVersion", "Lease", "Node", "MachineConfigPool"}
		return simulation.Fault{Lag: []string{kinds[h.random.IntN(len(kinds))]}, LagFor: h.upTo(2 * time.Minute)}
	}
}

// afterLock runs the action that waits for the acquisition of the lock, if this request comes next.
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

// edit changes an object as a person does. An API server that rejects the change is fine.
func edit[T client.Object](h *runner, object T, key client.ObjectKey, change func(T)) {
	ctx := context.Background()
	if err := h.cluster.Client.Get(ctx, key, object); err != nil {
		return
	}
	change(object)
	if err := h.cluster.Client.Update(ctx, object); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line[:min(len(line), 200)]
}

// upgradeConfig returns an upgrade that may well succeed.
func (h *runner) upgradeConfig(key client.ObjectKey) *v1alpha1.UpgradeConfig {
	cfg := &v1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: v1alpha1.UpgradeConfigSpec{
			Type: []string{"OSD", "ARO"}[h.random.IntN(2)], UpgradeAt: h.soon(), PDBForceDrainTimeout: new(int32(h.random.IntN(60))),
			Desired: v1alpha1.Update{Version: "4.20.6", Channel: channel},
		},
	}
	if h.random.IntN(3) == 0 {
		cfg.Spec.CapacityReservation = new(true)
	}
	return cfg
}

// soon returns a time at which an upgrade may begin, written for people.
func (h *runner) soon() string {
	return h.world.Now().Add(h.upTo(12 * time.Minute)).UTC().Format(time.RFC3339)
}
