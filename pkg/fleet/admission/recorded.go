// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// stop returns the published stop of this attempt, unless a person has given an answer since that applies to a member: one that
// did not when the stop was published. An answer that no longer applies ends no stop.
func (f *Fleet) stop(members []FleetMember) rollout.Stop {
	published := &f.Upgrade.Status
	if published.Stop == nil || published.Attempt != Attempt(f.Upgrade) {
		return rollout.Stop{}
	}
	if now, before := applied(members), published.Stop.Annotations; now != before && number(now) >= number(before) {
		return rollout.Stop{}
	}
	return rollout.Stop{Reason: published.Stop.Reason, Message: published.Stop.Message}
}

// applied identifies the answers that apply to members, after their number; empty if none does.
func applied(members []FleetMember) string {
	var all []string
	for i := range members {
		m := &members[i]
		if m.Forgotten {
			all = append(all, "failure of "+m.Name)
		}
		if m.isLeftOut() {
			all = append(all, "canary "+m.Name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return fmt.Sprintf("%d-%s", len(all), text.Hash(strings.Join(all, "\n"), 8))
}

// number returns the number of answers that a text identifies. Those that a former release published have no number, and are
// no fewer than any others.
func number(applied string) int {
	digits, _, isNumbered := strings.Cut(applied, "-")
	if !isNumbered && applied != "" {
		return math.MaxInt
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// unapplied returns the clusters that the answers of this attempt name without effect. A canary that is gone has no member.
func (t *totals) unapplied() []string {
	named := answers(t.Upgrade, fleetv1beta1.ForgetFailureAnnotation)
	if without := answers(t.Upgrade, fleetv1beta1.ContinueWithoutCanaryAnnotation); t.CanariesGone == 0 {
		maps.Copy(named, without)
	}
	for i := range t.members {
		if m := &t.members[i]; m.Forgotten || m.Waived && m.Canary {
			delete(named, m.Name)
		}
	}
	return slices.Sorted(maps.Keys(named))
}

// IsForgotten reports whether a person has forgotten the failure of the cluster in this attempt.
func IsForgotten(upgrade *fleetv1beta1.ManagedClustersUpgrade, cluster string) bool {
	return answers(upgrade, fleetv1beta1.ForgetFailureAnnotation)[cluster] != ""
}

// Departed returns the clusters of this attempt that are gone, as the status counts them.
func Departed(upgrade *fleetv1beta1.ManagedClustersUpgrade) []fleetv1beta1.DepartedClusters {
	if upgrade.Status.Attempt != Attempt(upgrade) {
		return nil
	}
	return upgrade.Status.Departed
}

// answers returns the reason for each cluster that an annotation names in this attempt: the person has said nothing about
// failures of other attempts. An entry without an attempt is about the first one. An entry without a reason has no effect.
func answers(upgrade *fleetv1beta1.ManagedClustersUpgrade, annotation string) map[string]string {
	found := map[string]string{}
	for _, entry := range strings.FieldsFunc(upgrade.Annotations[annotation], func(r rune) bool { return r == ';' || r == '\n' }) {
		named, reason, _ := strings.Cut(entry, "=")
		cluster, attempt, hasAttempt := strings.Cut(strings.TrimSpace(named), "@")
		if !hasAttempt {
			attempt = "1"
		}
		if reason = strings.TrimSpace(reason); cluster != "" && reason != "" && attempt == strconv.Itoa(int(Attempt(upgrade))) {
			found[cluster] = reason
		}
	}
	return found
}

func departed(published []fleetv1beta1.DepartedClusters) rollout.Departed {
	d := rollout.Departed{Failures: map[int]int{}}
	for _, group := range published {
		d.Failures[int(group.Index)-1] += int(group.Failed)
		d.Canaries += int(group.Canaries)
	}
	return d
}

// AreCanariesFixed reports whether the canaries are fixed: each has a run, and labels no longer matter. A user who changes
// canaryClusters has them fixed again.
func AreCanariesFixed(upgrade *fleetv1beta1.ManagedClustersUpgrade) bool {
	selector := upgrade.Spec.UpgradeStrategy.CanaryClusters
	fixed := upgrade.Status.Canaries
	return selector != nil && fixed != nil && fixed.SelectorHash == selectorHash(selector)
}

func canariesFixed(upgrade *fleetv1beta1.ManagedClustersUpgrade) int {
	if !AreCanariesFixed(upgrade) {
		return 0
	}
	return int(upgrade.Status.Canaries.Count)
}

// Canaries identifies the canaries among the members.
func Canaries(upgrade *fleetv1beta1.ManagedClustersUpgrade, members []FleetMember) *fleetv1beta1.CanariesStatus {
	var names []string
	for i := range members {
		if m := &members[i]; m.Canary && !m.Hub {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return &fleetv1beta1.CanariesStatus{
		Count: int32(len(names)), Hash: text.Hash(strings.Join(names, "\n"), 8), SelectorHash: selectorHash(upgrade.Spec.UpgradeStrategy.CanaryClusters),
	}
}

// waivedCanaries returns how many of the canaries that are gone a person continues without. A cluster of that name may have come back,
// and is none.
func (f *Fleet) waivedCanaries() int {
	named := answers(f.Upgrade, fleetv1beta1.ContinueWithoutCanaryAnnotation)
	maps.DeleteFunc(named, func(cluster, _ string) bool { run := f.Runs[cluster]; return run != nil && run.Spec.Canary })
	return min(len(named), f.CanariesGone)
}

// canariesStatus identifies the canaries as before, and counts those that are gone.
func (f *Fleet) canariesStatus() *fleetv1beta1.CanariesStatus {
	canaries := f.Upgrade.Status.Canaries.DeepCopy()
	if canaries != nil && AreCanariesFixed(f.Upgrade) {
		canaries.Departed = int32(f.CanariesGone)
	}
	return canaries
}

func selectorHash(selector *fleetv1beta1.CanaryClusters) string {
	encoded, err := json.Marshal(selector)
	if err != nil {
		return "invalid" // texts can be encoded
	}
	return text.Hash(string(encoded), 8)
}
