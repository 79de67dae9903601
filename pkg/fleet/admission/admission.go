// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Fleet holds what the plan, the members, and the status of an upgrade are made of.
type Fleet struct {
	Upgrade      *fleetv1beta1.ManagedClustersUpgrade
	Selection    selection.Selection
	Clusters     map[string]*clusterv1.ManagedCluster        // all of them
	Runs         map[string]*fleetv1alpha1.ClusterUpgradeRun // of the upgrade, by cluster
	Dependencies Dependencies
	Locked       map[string]string               // the other upgrade at work on a cluster
	Records      map[string]ClusterRecord        // what is remembered about a cluster
	Departed     []fleetv1beta1.DepartedClusters // that are gone, as the status counts them
	CanariesGone int                             // of earlier attempts, that left the hub before they were complete
	RecordsLost  string                          // how records of begun clusters were lost; empty if none were
	Now          time.Time
}

// ClusterRecord holds what is remembered about a cluster.
type ClusterRecord struct {
	DeselectedSince time.Time // zero unless consistent selections lack the cluster
	HeldSince       time.Time // zero unless the cluster cannot be admitted
	Refused         string    // why the run of the cluster cannot be written
}

// Attempt returns the attempt that the spec requests.
func Attempt(upgrade *fleetv1beta1.ManagedClustersUpgrade) int32 { return max(1, upgrade.Spec.Attempt) }

// Plan returns the plan of the spec and of its surroundings, for the members of the fleet.
func (f *Fleet) Plan(members []FleetMember, windows *Windows) rollout.Plan {
	spec := &f.Upgrade.Spec
	waived := f.waivedCanaries()
	return rollout.Plan{
		Attempt:        Attempt(f.Upgrade),
		StallTimeout:   delivery.Timeout(spec.UpgradeStrategy.StallTimeout, fleetv1beta1.DefaultStallTimeout),
		Type:           rollout.Type(spec.UpgradeStrategy.RolloutType),
		MaxConcurrency: spec.UpgradeStrategy.MaxConcurrency, MaxFailures: spec.UpgradeStrategy.MaxFailures,
		RequireCanaries: spec.UpgradeStrategy.CanaryClusters != nil && waived == 0, CanariesFixed: canariesFixed(f.Upgrade),
		CanariesGone: f.CanariesGone - waived,
		Paused:       spec.Paused, Cancelled: spec.Cancelled, DryRun: spec.DryRun,
		RecordsLost:          f.RecordsLost,
		Stop:                 f.stop(members),
		Departed:             departed(f.Departed),
		SelectionUnstable:    f.Selection.Unstable,
		DependencyMissing:    f.Dependencies.Missing,
		DependencyIncomplete: f.Dependencies.Incomplete,
		Window:               windows.State(spec.UpgradeStrategy.Windows, f.Now),
	}
}

// Members returns the members in the order of their admission: what is selected, what has a run, and what must be removed.
func (f *Fleet) Members() []FleetMember {
	attempt, fixed := Attempt(f.Upgrade), AreCanariesFixed(f.Upgrade)
	members := make([]FleetMember, 0, len(f.Selection.Members))
	listed := make(map[string]bool, len(f.Selection.Members))
	forgotten, without := answers(f.Upgrade, fleetv1beta1.ForgetFailureAnnotation), answers(f.Upgrade, fleetv1beta1.ContinueWithoutCanaryAnnotation)
	add := func(m FleetMember, isSelected bool) {
		if listed[m.Name] {
			return
		}
		listed[m.Name] = true
		m.State, m.DeselectedSince, m.Waived = rollout.NotStarted, f.Records[m.Name].DeselectedSince, without[m.Name] != ""
		run := f.Runs[m.Name]
		if isSelected && fixed {
			m.Canary = run != nil && run.Spec.Canary
		}
		if run != nil {
			m.SetRun(run, attempt, isSelected)
		}
		m.Forget(forgotten[m.Name])
		m.Awaited = fixed && m.Canary && m.State == rollout.NotStarted && run != nil && hasBegunBefore(run)
		switch {
		case isSelected && m.State == rollout.NotStarted:
			m.HoldReason, m.Hold = f.hold(m.Name)
		case m.Awaited && !m.Waived:
			m.HoldReason, m.Hold = fleetv1beta1.ReasonHeld, "it has begun in an earlier attempt, and is no longer selected: have it selected again"
		}
		m.HeldSince = f.Records[m.Name].HeldSince
		members = append(members, m)
	}
	for _, c := range f.Selection.Members {
		add(FleetMember{GroupName: c.GroupName, Member: rollout.Member{Name: c.Name, Group: c.Group, Canary: c.Canary, Hub: c.Hub}}, true)
	}
	for name := range f.Runs {
		add(FleetMember{Member: rollout.Member{Name: name}}, false)
	}
	for name, r := range f.Records {
		if !r.DeselectedSince.IsZero() {
			add(FleetMember{Member: rollout.Member{Name: name}}, false)
		}
	}
	slices.SortFunc(members, func(a, b FleetMember) int { return rollout.Compare(a.Member, b.Member) })
	return members
}

// Admit decides about the admission of the members.
func Admit(plan rollout.Plan, members []FleetMember, now time.Time) rollout.Decision {
	list := make([]rollout.Member, len(members))
	for i := range members {
		list[i] = members[i].Member
	}
	return rollout.Decide(plan, list, now)
}

// hold returns why a cluster must not begin, by what is known without writing to it; empty if it may.
func (f *Fleet) hold(name string) (reason, message string) {
	if message := f.Records[name].Refused; message != "" {
		return fleetv1beta1.ReasonHeld, message
	}
	cluster := f.Clusters[name]
	if message := Detached(cluster); message != "" {
		return fleetv1alpha1.ReasonClusterDetached, message
	}
	if message := Held(cluster); message != "" {
		return fleetv1beta1.ReasonHeld, message
	}
	if run := f.Runs[name]; run != nil && IsObstructed(run) {
		return run.Status.Reason, run.Status.Message
	}
	for _, p := range f.Dependencies.preceding {
		if !p.complete[name] {
			return fleetv1beta1.ReasonDependencyIncomplete, fmt.Sprintf("waiting until ManagedClustersUpgrade %s is complete on this cluster", p.name)
		}
	}
	if other := f.Locked[name]; other != "" {
		return fleetv1alpha1.ReasonLockedBy, "waits for ManagedClustersUpgrade " + other
	}
	if message := Unreachable(cluster); message != "" {
		return fleetv1beta1.ReasonUnreachable, message
	}
	return "", ""
}

// Detached describes why nothing can be delivered to a cluster; empty if it can. The cluster may be nil.
func Detached(cluster *clusterv1.ManagedCluster) string {
	switch {
	case cluster == nil:
		return "there is no such ManagedCluster"
	case cluster.DeletionTimestamp != nil:
		return "the ManagedCluster is being deleted"
	case !cluster.Spec.HubAcceptsClient:
		return "the hub does not accept the ManagedCluster"
	}
	return ""
}

// Unreachable describes since when the hub does not hear of a cluster; empty if it does.
func Unreachable(cluster *clusterv1.ManagedCluster) string {
	available := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	switch {
	case available == nil:
		return "unreachable: it has never reported to the hub"
	case available.Status != metav1.ConditionTrue:
		return "unreachable since " + text.FormatTime(available.LastTransitionTime.Time)
	}
	return ""
}

// Locked returns the other upgrades that are upgrading clusters, by cluster.
func Locked(ctx context.Context, reader client.Reader, upgrade *fleetv1beta1.ManagedClustersUpgrade) (map[string]string, error) {
	var list fleetv1alpha1.ClusterUpgradeRunList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ClusterUpgradeRuns of other upgrades: %w", err)
	}
	locked := map[string]string{}
	for i := range list.Items {
		if run := &list.Items[i]; !Owns(upgrade, run) && Locks(run) {
			ref := &run.Spec.ManagedClustersUpgrade
			locked[run.Namespace] = ref.Namespace + "/" + ref.Name
		}
	}
	return locked, nil
}

// Locks reports whether a run keeps other upgrades away from its cluster: it is in flight, or its cleanup has not ended.
func Locks(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	member := rollout.Member{State: StateOf(run, run.Spec.Attempt)}
	return member.InFlight() || cleansUp(run)
}

// Held returns why an annotation holds a cluster; empty if none does. The cluster may be nil.
func Held(cluster *clusterv1.ManagedCluster) string {
	if cluster == nil || !metav1.HasAnnotation(cluster.ObjectMeta, upgradev1alpha1.HoldAnnotation) {
		return ""
	}
	return "the annotation " + upgradev1alpha1.HoldAnnotation + " holds it: " + text.Reason(cluster.Annotations[upgradev1alpha1.HoldAnnotation])
}

// ClaimVersion is the claim of the installed release of an OpenShift cluster.
const ClaimVersion = "version.openshift.io"

// The claim of the topology of the control plane, and its value for a hosted one.
const (
	claimTopology = "controlplanetopology.openshift.io"
	external      = "External"
)

// Claims returns the claims of a cluster that decide about its admission.
func Claims(cluster *clusterv1.ManagedCluster) map[string]string {
	claims := map[string]string{}
	for _, claim := range cluster.Status.ClusterClaims {
		if decides(claim) {
			claims[claim.Name] = claim.Value
		}
	}
	return claims
}

func decides(c clusterv1.ManagedClusterClaim) bool {
	return c.Name == ClaimVersion || c.Name == claimTopology
}

// Outcome returns how the attempt ends by a claim of the cluster, without anything being delivered to it; nil if it does not
// end. A claim of the target says nothing about the health of the cluster: one that must be observed, because others wait
// for it or because it has failed before, gets a run.
func Outcome(spec *fleetv1beta1.ManagedClustersUpgradeSpec, cluster *clusterv1.ManagedCluster, mustObserve bool) *fleetv1alpha1.Outcome {
	if cluster == nil || spec.ClusterVersion == nil {
		return nil
	}
	if refusal := Refusal(spec.ClusterVersion, cluster); refusal != nil {
		return refusal
	}
	installed := Claims(cluster)[ClaimVersion]
	onlyPlatform := spec.OCPOperators == nil && spec.PreUpgradeAction == nil && spec.PostUpgradeAction == nil
	if !mustObserve && onlyPlatform && spec.ClusterVersion.Image == "" && isSame(installed, spec.ClusterVersion.Version) {
		return &fleetv1alpha1.Outcome{
			State: fleetv1alpha1.StateComplete, Reason: fleetv1alpha1.ReasonAlreadyAtTarget,
			Message: fmt.Sprintf("it had %s before it was admitted", installed),
		}
	}
	return nil
}

// Refusal returns how a claim fails the attempt: a hosted control plane, or a newer release; nil if none does.
func Refusal(release *fleetv1beta1.ClusterVersionSpec, cluster *clusterv1.ManagedCluster) *fleetv1alpha1.Outcome {
	claims := Claims(cluster)
	switch installed := claims[ClaimVersion]; {
	case claims[claimTopology] == external:
		return &fleetv1alpha1.Outcome{
			State: fleetv1alpha1.StateFailed, Reason: fleetv1alpha1.ReasonHostedControlPlane,
			Message: "its control plane is hosted, and is not upgraded by its ClusterVersion",
		}
	case IsNewer(installed, release.Version):
		return &fleetv1alpha1.Outcome{
			State: fleetv1alpha1.StateFailed, Reason: fleetv1alpha1.ReasonNewerVersionInstalled,
			Message: fmt.Sprintf("it has %s, which is newer than %s", installed, release.Version),
		}
	}
	return nil
}

// IsNewer reports whether a release is newer than the target, if both are versions.
func IsNewer(release, target string) bool {
	change, err := clusterstate.CompareVersions(release, target)
	return err == nil && change == clusterstate.Downgrade
}

func isSame(a, b string) bool {
	change, err := clusterstate.CompareVersions(a, b)
	return err == nil && change == clusterstate.Same
}

// TrimCluster drops what the hub does not read. It is the transform of the cache for all its controllers.
func TrimCluster(object any) (any, error) {
	cluster, is := object.(*clusterv1.ManagedCluster)
	if !is {
		return object, nil // the last known state of a deleted object
	}
	trimmed := &clusterv1.ManagedCluster{TypeMeta: cluster.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Name: cluster.Name, UID: cluster.UID, ResourceVersion: cluster.ResourceVersion, Generation: cluster.Generation,
		CreationTimestamp: cluster.CreationTimestamp, DeletionTimestamp: cluster.DeletionTimestamp,
		Labels: cluster.Labels,
	}}
	if reason, held := cluster.Annotations[upgradev1alpha1.HoldAnnotation]; held {
		trimmed.Annotations = map[string]string{upgradev1alpha1.HoldAnnotation: reason}
	}
	trimmed.Spec.HubAcceptsClient = cluster.Spec.HubAcceptsClient
	trimmed.Status.Conditions = cluster.Status.Conditions
	for _, claim := range cluster.Status.ClusterClaims {
		if decides(claim) {
			trimmed.Status.ClusterClaims = append(trimmed.Status.ClusterClaims, claim)
		}
	}
	return trimmed, nil
}
