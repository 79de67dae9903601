// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import "testing"

// keptSeed is a history that has found a defect.
type keptSeed struct {
	defect  string
	seed    uint64
	actions int    // the number of actions that existed at the time
	mutant  mutant // puts the defect back
}

// keptSeeds are the histories that have found a defect, by the kind of their upgrades.
var keptSeeds = map[Kind][]keptSeed{
	UpgradeConfigs: {
		{
			"an extra node is left after its record was replaced", 2800000, 58,
			mutant{{"pkg/lifecycle/scope.go", "case attempt.Key == \"\":", "case attempt.Key == \"\" || MUTANT:"}},
		}, {
			"the lock is held by an upgrade that was deleted at once", 2200002, 58,
			mutant{{"pkg/lock/lock.go", "if current.UID == holder.UID ||", "if MUTANT || current.UID == holder.UID ||"}},
		}, {
			"Upgraded is reported while a pool is behind", 6100001, 58,
			mutant{{"pkg/clusterstate/pool_progress.go", "case p.Pool.Paused && p.Pool.Empty() && p.Total() == 0:", "case p.Pool.Paused && (MUTANT || p.Pool.Empty() && p.Total() == 0):"}},
		}, {
			"a failed upgrade that is deleted is said to go on", 1066516904303, 58,
			mutant{{"pkg/lifecycle/cancel.go", "case phase == engine.PhaseCommitted && s.failure() != nil:", "case !MUTANT && phase == engine.PhaseCommitted && s.failure() != nil:"}},
		}, {
			"two leaders overwrite each other's results of pre-checks", 473354915523, 42,
			mutant{{"pkg/lifecycle/status.go", "if last == want && s.now.Before(retry)", "if last == want && (!MUTANT || sum.precheck.status == \"\") && s.now.Before(retry)"}},
		}, {
			"two leaders overwrite each other's statuses", 74740207995, 58,
			mutant{{"pkg/lifecycle/status.go", "&& stored != nil && stored.ObservedGeneration", "&& (!MUTANT || sum.precheck.status != \"\") && stored != nil && stored.ObservedGeneration"}},
		}, {
			"two leaders whose clocks differ overwrite each other's heartbeats", 930005, 42,
			mutant{{"pkg/engine/engine.go", "&& (age < 0 || age >= defaultMessageInterval)", "&& (MUTANT || age < 0 || age >= defaultMessageInterval)"}},
		}, {
			"a request is not withdrawn after its record was replaced", 2500004, 58,
			mutant{
				{"pkg/lifecycle/notes.go", "if r.RequestTime == nil && (attempt.Requested ||", "if r.RequestTime == nil && (!MUTANT || !s.claimed) && (attempt.Requested ||"},
				{"pkg/lifecycle/record.go", "record.UpgradeAt == nil {", "!MUTANT && record.UpgradeAt == nil {"},
			},
		}, {
			"the lock is held by an upgrade that the cache showed late", 2500005, 58,
			mutant{{"pkg/lifecycle/controller.go", "Requests: r.leaseChanged,", "Requests: map[bool]func(context.Context, client.Object) []reconcile.Request{false: r.leaseChanged, true: r.factChanged}[MUTANT],"}},
		}, {
			"what another client requests is withdrawn", 67063348, 51,
			mutant{{"pkg/steps/controlplane/withdraw.go", "version.IsOwnRequest(target.Version, image) != clusterstate.No", "(MUTANT || version.IsOwnRequest(target.Version, image) != clusterstate.No)"}},
		}, {
			"the cleanup of an upgrade that an earlier release started is cut short", 329722659689, 58,
			mutant{{"pkg/lifecycle/record.go", "record.UpgradeAt == nil {", "!MUTANT && record.UpgradeAt == nil {"}},
		}, {
			"two leaders whose clocks differ overwrite each other's answer whether the window is open", 562214969795, 58,
			mutant{{"pkg/engine/engine.go", "return p.changedBeside(c, saved) ||", "return p.changedBeside(c, saved) || MUTANT && isPauseChange(c, saved) ||"}},
		}, {
			"an upgrade that has ended keeps its lock while another one waits", 200000, 58,
			mutant{
				{"pkg/lifecycle/reconciler.go", "!history.AttemptFinished(*r.Kind.Status(obj).History, attempt.Version, attempt.Key)", "(MUTANT || !history.AttemptFinished(*r.Kind.Status(obj).History, attempt.Version, attempt.Key))"},
				{"pkg/lifecycle/cancel.go", "(until time.Time, err error) (time.Time, error) {", "(until time.Time, err error) (time.Time, error) {\n\tif MUTANT {\n\t\treturn time.Time{}, err\n\t}"},
			},
		}, {
			"an upgrade that has ended keeps its lock for the longest time between two retries", 600000, 58,
			mutant{{"pkg/lifecycle/cancel.go", "if s.now.Before(until.Add(-maxBackoff)) {", "if MUTANT || s.now.Before(until.Add(-maxBackoff)) {"}},
		}, {
			"the channel that another client has set while the upgrade was held is restored", 100003, 58,
			mutant{{"pkg/steps/controlplane/channel.go", "&& !clusterstate.OwnedByOthers(", "&& !MUTANT && !clusterstate.OwnedByOthers("}},
		}, {
			"an upgrade whose object is created again in mid-upgrade has another commence time", 2000006, 58,
			mutant{{"pkg/lifecycle/notes.go", "err == nil && r.CommenceTime == nil {", "!MUTANT && err == nil && r.CommenceTime == nil {"}},
		}, {
			"an upgrade whose object is created again before the health check is not continued", 2600005, 58,
			mutant{{"pkg/lifecycle/notes.go", "phase, err := engine.CurrentPhase(ctx, s.Clock, s.plan.Book, begun)", "if MUTANT {\n\t\t\tbegun.RequestTime = nil\n\t\t}\n\t\tphase, err := engine.CurrentPhase(ctx, s.Clock, s.plan.Book, begun)"}},
		}, {
			"an upgrade that goes on without its object is forgotten once another one acquires its lock", 880319, 58,
			mutant{{"pkg/lock/lock.go", "if continues, err = l.abandon(ctx, lease); err != nil {", "if MUTANT {\n\t\t} else if continues, err = l.abandon(ctx, lease); err != nil {"}},
		}, {
			"two leaders whose clocks differ save in turn that a step is slow", 990465, 58,
			mutant{{"pkg/engine/engine.go", "|| p.becomesSlow(step, saved, now)) && !now.Before(p.engine.pauseDue(now))", "|| p.becomesSlow(step, saved, now)) && (MUTANT && p.becomesSlow(step, saved, now) || !now.Before(p.engine.pauseDue(now)))"}},
		}, {
			"two leaders, one with an old object in its cache, acquire and release the lock in turn", 189629212987, 58,
			mutant{{"pkg/lifecycle/locking.go", "!s.held && since >= 0", "!MUTANT && !s.held && since >= 0"}},
		},
	},
	UpgradeJobs: {
		{
			"an UpgradeJob commences while the workers roll out the release before", 88, 35,
			mutant{{"pkg/upgraders/job_steps.go", "inOrder(controlplane.NothingInstalling(t.Client), ", "inOrder(map[bool]engine.UpgradeStep{false: controlplane.NothingInstalling(t.Client), true: controlplane.Upgradeable(t.Client, s.target)}[MUTANT], "}},
		}, {
			"an UpgradeJob is Upgraded although another update has replaced its own while the operator was down", 5500089, 50,
			mutant{{"pkg/engine/call.go", "case run.Committed && run.Outcome == \"\":", "case !MUTANT && run.Committed && run.Outcome == \"\":"}},
		},
	},
	ManagedClustersUpgrades: {
		{
			"a late success is written again each minute", 2200004, 50,
			mutant{{"pkg/lifecycle/status.go", "if old != nil && changed && isSameTransition(old, c) {", "if !MUTANT && old != nil && changed && isSameTransition(old, c) {"}},
		}, {
			"two hubs whose caches differ add and remove the finalizer of a run in turn", 550103, 50,
			mutant{{"pkg/controllers/clusterupgraderun/observe.go", "err != nil || confirmed != found {", "err != nil || !MUTANT && confirmed != found {"}},
		}, {
			"a release is requested with what an earlier update has left on the cluster", 7100001, 50,
			mutant{{"pkg/clusterstate/desired_update.go", "return map[string]any{\"version\": release.Version,", "if MUTANT {\n\t\treturn map[string]any{\"version\": release.Version}\n\t}\n\treturn map[string]any{\"version\": release.Version,"}},
		}, {
			"a run that is created for another process after the upgrade was deleted stays", 7100192, 50,
			mutant{{"pkg/controllers/managedclustersupgrade/preflight.go", "run := &runs.Items[i]; run.DeletionTimestamp.IsZero()", "run := &runs.Items[i]; !MUTANT && run.DeletionTimestamp.IsZero()"}},
		},
	},
}

// keptTest is a test that stands in for the history that has found a defect, since hardly any history finds it by now.
type keptTest struct {
	defect    string
	pkg, test string
	mutant    mutant
}

var keptTests = []keptTest{
	{
		"clusters that have failed are no canaries of a retry",
		"pkg/controllers/managedclustersupgrade", "TestCanaries_among_clusters_that_have_failed",
		mutant{
			{"pkg/controllers/managedclustersupgrade/admit.go", "return (m.State == rollout.NotStarted || wasComplete)", "return (m.State == rollout.NotStarted && (!MUTANT || m.Run == nil) || wasComplete)"},
			{"pkg/controllers/managedclustersupgrade/admit.go", "case canary, m.State == rollout.NotStarted:", "case !MUTANT && (canary || m.State == rollout.NotStarted):"},
		},
	}, {
		"the admission of a cluster is withdrawn that had accepted the release before a pause withdrew the request",
		"pkg/fleet/admission", "TestWaitsSince_until_the_release_is_accepted",
		mutant{{"pkg/fleet/admission/member.go", "if s.Accepted || record.RequestTime != nil", "if !MUTANT && s.Accepted || record.RequestTime != nil"}},
	}, {
		"an upgrade starts before its window by a forged status",
		"pkg/lifecycle", "TestForgedRecordDoesNotStartBeforeItsTime",
		mutant{{"pkg/lifecycle/scope.go", "case s.now.Before(s.upgradeAt) && s.startedBeforeWindow():", "case !MUTANT && s.now.Before(s.upgradeAt) && s.startedBeforeWindow():"}},
	}, {
		"pods are not forced after the clock was a day ahead",
		"pkg/clusterstate", "TestDrain_Start",
		mutant{{"pkg/clusterstate/drain.go", "&& IsPlausible(upgradeStart, now) &&", "&& (MUTANT || IsPlausible(upgradeStart, now)) &&"}},
	}, {
		"an upgrade starts beside another one whose lock was deleted",
		"pkg/lifecycle", "TestLeaseThatAnotherClientDeletes",
		mutant{{"pkg/lifecycle/locking.go", "s.otherInProgress(ctx); err != nil || other != nil {", "s.otherInProgress(ctx); !MUTANT && (err != nil || other != nil) {"}},
	}, {
		"the channel is not restored if an earlier attempt had commenced",
		"pkg/steps/controlplane", "TestRestoreChannel",
		mutant{{"pkg/steps/controlplane/channel.go", "if run.Committed || version.Observe(target).HasBegun() {", "if run.Committed || MUTANT && version.InHistory(target) || version.Observe(target).HasBegun() {"}},
	}, {
		"a request is not withdrawn after its record was replaced twice",
		"pkg/controllers/upgradeconfig", "TestRequestIsWithdrawnAfterTheRecordWasForged",
		mutant{{"pkg/lifecycle/scope.go", "case s.isInProgress(attempt):\n\t\tif attempt.Type", "case !MUTANT && s.isInProgress(attempt):\n\t\tif attempt.Type"}},
	}, {
		"an upgrade fails at the end of its window although another client has started its target",
		"pkg/engine", "TestDeadline_stops_the_step",
		mutant{{"pkg/engine/call.go", "p.record, b.is != held)", "p.record, !MUTANT && b.is != held)"}},
	}, {
		"two leaders whose clocks differ overwrite each other's end of the window of an upgrade that waits",
		"pkg/lifecycle", "TestStatusOfAnAttemptThatWaitsForTheLockDoesNotDependOnTheClock",
		mutant{{"pkg/lifecycle/admission.go", "case !s.upgradeAt.IsZero():", "case !s.upgradeAt.IsZero() && (!MUTANT || !s.constraints().IsExpired(s.now)):"}},
	}, {
		"two leaders whose clocks differ request the version and withdraw it in turn",
		"pkg/engine", "TestRequest_without_effect_is_repeated_once_a_second",
		mutant{{"pkg/engine/call.go", "if e.UnrequestedAt.IsZero() ||", "if MUTANT || e.UnrequestedAt.IsZero() ||"}},
	}, {
		"an upgrade that goes on is deleted before its record replaces the one before",
		"pkg/simulation/histories", "TestUpgradeThatContinuesMayHaveNoRecord",
		mutant{{"pkg/simulation/histories/events.go", "if !strings.HasPrefix(event.Message, \"the upgrade to \"+newest(c.version)+\" had commenced;\")", "if (MUTANT && newest(c.version) != now.Version || !MUTANT && !strings.HasPrefix(event.Message, \"the upgrade to \"+newest(c.version)+\" had commenced;\"))"}},
	}, {
		"a silence lasts for as long as the clock was ahead that has extended it",
		"pkg/steps/silence", "TestOpen_asks_Alertmanager_for_the_time",
		mutant{{"pkg/steps/silence/silences.go", "if !at.IsZero() {", "if !MUTANT && !at.IsZero() {"}},
	}, {
		"a request is made after a fence whose note is taken back only later",
		"pkg/lock", "TestRenew_makes_earlier_reads_conflict",
		mutant{{"pkg/lock/lock.go", "func(*coordinationv1.Lease, Attempt) bool { return false })", "func(lease *coordinationv1.Lease, attempt Attempt) bool { return MUTANT && AttemptOf(lease) == attempt })"}},
	}, {
		"two leaders whose clocks differ restore and replace the time of the last progress in turn",
		"pkg/engine", "TestTimesInTheFutureAreReplacedAtMostOnceAMinute",
		mutant{{"pkg/engine/engine.go", "age >= 0 && age < defaultMessageInterval", "!MUTANT && age >= 0 && age < defaultMessageInterval"}},
	}, {
		"the extra nodes of an upgrade stay whose record and Lease were lost while the operator was down",
		"pkg/controllers/upgradeconfig", "TestForgottenUpgradeIsCleanedUp",
		mutant{{"pkg/lifecycle/scope.go", "if s.isForgotten() {", "if !MUTANT && s.isForgotten() {"}},
	}, {
		"the extra nodes of an upgrade stay whose record was forged and whose Lease was lost while the operator was down",
		"pkg/controllers/upgradeconfig", "TestForgottenUpgradeIsCleanedUp",
		mutant{{"pkg/lifecycle/cancel.go", "!s.claimed && !s.record.InProgress() &&", "!s.claimed && !s.record.InProgress() && (!MUTANT || !s.record.Finished()) &&"}},
	}, {
		"the request of another client is requested again without a pause",
		"pkg/lifecycle", "TestRequestWithoutEffectIsRepeatedOnceASecond",
		mutant{{"pkg/lifecycle/scope.go", "s.memory.unrequested = s.Clock.Now()", "if !MUTANT {\n\t\t\t\ts.memory.unrequested = s.Clock.Now()\n\t\t\t}"}},
	}, {
		"a retry that is requested while an attempt ends is not noticed",
		"pkg/lifecycle", "TestEndAsksForAnotherPass",
		mutant{{"pkg/lifecycle/reconciler.go", "case (next.IsZero() || s.record.Finished()) &&", "case !MUTANT && (next.IsZero() || s.record.Finished()) &&"}},
	}, {
		"two leaders whose clocks differ deliver a request and withdraw it in turn",
		"pkg/fleet/run", "TestDeliver_makes_the_same_change_at_most_once_a_second",
		mutant{{"pkg/fleet/run/cluster.go", "case c.Writes.of(key, retryAfter).delivery == delivery.Of(desired):", "case !MUTANT && c.Writes.of(key, retryAfter).delivery == delivery.Of(desired):"}},
	}, {
		"a hub writes when a canary could have stopped a rollout that is cancelled",
		"pkg/rollout", "TestDecide_canary_that_cannot_begin",
		mutant{{"pkg/rollout/stop.go", "case plan.Cancelled:", "case !MUTANT && plan.Cancelled:"}},
	}, {
		"a cluster that a clock ahead has admitted waits for the time of that clock",
		"pkg/controllers/clusterupgraderun", "TestRun_is_admitted_by_a_clock_that_is_ahead",
		mutant{{"pkg/controllers/clusterupgraderun/controller.go", "Due: true,", "Due: !MUTANT,"}},
	}, {
		"the hub is at rest before a cluster that has come back is selected again",
		"pkg/simulation/histories", "TestFleetIsNotAtRestBeforeItsPlacementIsDecided",
		mutant{{"pkg/simulation/histories/fleet_rest.go", "if c.f.placements.pending {", "if !MUTANT && c.f.placements.pending {"}},
	}, {
		"the operator is at rest before it has looked at an upgrade that another client has forged",
		"pkg/simulation/histories", "TestHistoryIsNotAtRestBeforeAProcessHasLooked",
		mutant{{"pkg/simulation/histories/driver.go", "h.leader() != nil && h.world.Quiet() && unrest()", "(MUTANT || h.leader() != nil && h.world.Quiet()) && unrest()"}},
	}, {
		"a request that was sent within the window and arrives after it is reported",
		"pkg/simulation/histories", "TestRequestCountsWhenItIsSent",
		mutant{{"pkg/simulation/histories/requests.go", "sent := change.Sent", "sent := map[bool]time.Time{false: change.Sent, true: change.Time}[MUTANT]"}},
	}, {
		"the machine config operator works towards a release forever whose update is reverted",
		"pkg/simulation/openshift", "TestCluster_reverts_an_update",
		mutant{{"pkg/openshiftsim/machineconfig/operator.go", "&& !cvo.IsUpdating(&operator) {", "&& (MUTANT || !cvo.IsUpdating(&operator)) {"}},
	}, {
		"the failure of a canary that was refused is forgotten before its status shows it",
		"pkg/simulation/histories", "TestFailureOfARefusedCanaryMayBeForgotten",
		mutant{{"pkg/simulation/histories/fleet_checker.go", "|| canary.Spec.Outcome != nil", "|| !MUTANT && canary.Spec.Outcome != nil"}},
	}, {
		"a cluster begins twice because a hub creates its run again while another one deletes its upgrade",
		"pkg/simulation/histories", "TestClusterMayBeginForAnUpgradeThatIsBeingDeleted",
		mutant{{"pkg/simulation/histories/fleet_checker.go", "|| u.DeletionTimestamp != nil) && c", "|| !MUTANT && u.DeletionTimestamp != nil) && c"}},
	}, {
		"two hubs, one with an old run in its cache, overwrite each other's statuses",
		"pkg/controllers/managedclustersupgrade", "TestStatus_of_another_hub_is_newer_than_the_cache",
		mutant{{"pkg/controllers/managedclustersupgrade/scope.go", "if status.ClustersSummery != nil && !eq", "if !MUTANT && status.ClustersSummery != nil && !eq"}},
	}, {
		"a canary without which a person continues in one attempt is none in the next one",
		"pkg/controllers/managedclustersupgrade", "TestContinue_without_a_canary_in_one_attempt",
		mutant{{"pkg/controllers/managedclustersupgrade/admit.go", "Canary: m.Canary && !m.Hub,", "Canary: m.Canary && !m.Hub && (!MUTANT || !m.Waived),"}},
	}, {
		"a soak ends although a silent agent has not given up a work that another client has removed",
		"pkg/fleet/run", "TestProveAgent_waits_for_its_own_removal",
		mutant{{"pkg/fleet/run/soak.go", "case work == nil && isOver &&", "case work == nil && isOver && MUTANT:\n\t\treturn true, nil\n\tcase work == nil && isOver &&"}},
	}, {
		"a work of a dry run is created for another process after the upgrade was deleted, and stays",
		"pkg/controllers/managedclustersupgrade", "TestDryRun_work_of_an_upgrade_that_is_gone",
		mutant{{"pkg/controllers/managedclustersupgrade/preflight.go", "if err != nil || len(works)+len(runs.Items) == 0 {", "if MUTANT || err != nil || len(works)+len(runs.Items) == 0 {"}},
	}, {
		"a work stays whose run is deleted while the cache of the hub is behind",
		"pkg/controllers/clusterupgraderun", "TestRun_deleted_while_the_cache_is_behind",
		mutant{{"pkg/controllers/clusterupgraderun/controller.go", "return cluster.UnlistActions(ctx)\n\t}", "if err := cluster.UnlistActions(ctx); !MUTANT || err != nil {\n\t\t\treturn err\n\t\t}\n\t}"}},
	}, {
		"an upgrade that is complete does not rest while a dry run is requested",
		"pkg/controllers/managedclustersupgrade", "TestSelection",
		mutant{{"pkg/controllers/managedclustersupgrade/scope.go", "&& s.cache.preflight.isOver() {", "&& s.cache.preflight.isOver() && (!MUTANT || !s.Upgrade.Spec.DryRun) {"}},
	}, {
		"a stop ends by an answer that applies to nothing",
		"pkg/controllers/managedclustersupgrade", "TestAnswer_that_applies_to_nothing_ends_no_stop",
		mutant{{"pkg/fleet/admission/recorded.go", "; now != before && n", "; MUTANT || now != before && n"}},
	}, {
		"a canary stops the rollout that waits for another upgrade on its cluster",
		"pkg/controllers/managedclustersupgrade", "TestCanary_waits_for_another_upgrade",
		mutant{{"pkg/controllers/managedclustersupgrade/scope.go", "m.Hold == \"\" || m", "m.Hold == \"\" || !MUTANT && m"}},
	}, {
		"a canary stops the rollout that cannot begin while it is paused",
		"pkg/controllers/managedclustersupgrade", "TestCanary_is_not_available_while_nothing_may_begin",
		mutant{{"pkg/controllers/managedclustersupgrade/scope.go", "case s.decision.GoesOn, s", "case MUTANT, s.decision.GoesOn, s"}},
	}, {
		"a canary stops the rollout that waits for an upgrade in progress on its cluster",
		"pkg/controllers/managedclustersupgrade", "TestCanary_waits_for_another_upgrade",
		mutant{{"pkg/fleet/admission/admission.go", "if !p.complete[name] {", "if !p.complete[name] && (!MUTANT || f.Locked[name] == \"\") {"}},
	}, {
		"an answer about a canary that is gone ends once a cluster of its name begins",
		"pkg/controllers/managedclustersupgrade", "TestRetry_without_a_canary_that_has_come_back",
		mutant{{"pkg/fleet/admission/recorded.go", "return run != nil && run.Spec.Canary", "return run != nil && (MUTANT || run.Spec.Canary)"}},
	}, {
		"a cluster whose agent is silent fails because the hub has started again",
		"pkg/controllers/clusterupgraderun", "TestUnreachable_cluster_is_pending_again_although_the_hub_starts_again",
		mutant{{"pkg/fleet/admission/member.go", "since.Before(now) {", "!MUTANT && since.Before(now) {"}},
	}, {
		"a hub that was down counts a canary as failed before it looks",
		"pkg/controllers/clusterupgraderun", "TestSafety_hub_that_was_down_counts_no_canary_before_a_look",
		mutant{{"pkg/controllers/managedclustersupgrade/scope.go", "&& m.Deadline.Before(news) {", "&& !MUTANT && m.Deadline.Before(news) {"}},
	},
}

// TestFailedSeeds replays histories that have found a defect, to keep it from returning: all of them with -fixed, otherwise
// few of UpgradeConfigs.
func TestFailedSeeds(t *testing.T) {
	t.Parallel()
	for of, seeds := range keptSeeds {
		if of == UpgradeConfigs && !*fixed {
			seeds = seeds[:2]
		}
		for _, kept := range seeds {
			t.Run(kept.defect, func(t *testing.T) {
				t.Parallel()
				if cell := cells[kept.defect]; cell != "" {
					t.Log("its cell of the tables of the commit:", cell)
				}
				check(t, run(kept.seed, of, kept.actions))
			})
		}
	}
}
