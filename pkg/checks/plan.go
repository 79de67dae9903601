// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// InformerReadiness is the name of the built-in informer that reports on updates before they start.
const InformerReadiness = "builtin-readiness"

// UIDNotOffered is the UID of the finding that the release is not offered.
const UIDNotOffered = "not-offered"

// minCertificateLife is how long the certificates of a pool must remain valid.
const minCertificateLife = 7 * 24 * time.Hour

// crossesMinor reports whether the update changes the minor version. It also returns true if this is unknown.
func (f Facts) crossesMinor() bool {
	change, err := f.Version.ChangeTo(clusterstate.Target{Version: f.Target})
	return err != nil || change.CrossesMinor()
}

// Readiness returns findings about the risks of updating the cluster to the target. It is pure.
func Readiness(facts Facts, target string) []Finding {
	facts.Target, facts.Options = target, GateOptions{IgnoreDelayedPools: true}
	var found []Finding
	var unreadable []FactSource
	for _, rule := range rulesOf(Plan) {
		found = append(found, rule.Find(facts, Plan)...)
		for _, source := range rule.Needs {
			irrelevant := source == SourceAdminGates && !facts.crossesMinor()
			if !facts.Has(source) && !irrelevant && !slices.Contains(unreadable, source) {
				unreadable = append(unreadable, source)
			}
		}
	}
	for _, source := range unreadable {
		found = append(found, facts.unreadable(source))
	}
	for i := range found {
		found[i].Informer = InformerReadiness
		found[i].ID = cmp.Or(found[i].ID, found[i].PlanUID())
	}
	return found
}

func about(level Level, kind Type, reason, id, summary string) Finding {
	f := controlPlane.finding(level, kind, reason, summary)
	f.ID = id
	return f
}

func findRisks(in Facts, _ RulePhase) []Finding {
	var found []Finding
	for _, risk := range in.Version.AvailableUpdate(clusterstate.Target{Version: in.Target}).Risks {
		f := about(LevelWarning, TypeUnknown, "KnownRisk", NewUID("risk", risk.Name), "the update has the known risk "+text.Excerpt(risk.Name))
		f.Description, f.Remedy = text.Reason(risk.Message), "Read about the risk, and accept it or select another release."
		if strings.HasPrefix(risk.URL, "https://") {
			f.Reference = risk.URL
		}
		found = append(found, f)
	}
	return found
}

// RiskOf returns the name of the risk in a UID of Readiness, or false if the finding is not about a risk.
func RiskOf(uid string) (string, bool) { return strings.CutPrefix(uid, "risk/") }

func findOffer(in Facts, _ RulePhase) []Finding {
	if !in.Has(SourceClusterVersion) || in.isRunning() {
		return nil
	}
	update := in.Version.AvailableUpdate(clusterstate.Target{Version: in.Target})
	switch unknown := in.Version.UpdatesUnknown(); {
	case update.Ambiguous:
		f := about(LevelWarning, TypeUnknown, "AmbiguousOffer", "ambiguous-offer", "several images of the release are offered")
		f.Remedy = "Select a channel that offers one of them, or request the update with its image."
		return []Finding{f}
	case update.Available:
		return nil
	case unknown != "":
		f := about(LevelError, TypeUpdateStalled, "UpdatesUnknown", UIDNotOffered, "it is unknown whether the release is offered")
		f.Description = unknown
		return []Finding{f}
	}
	f := about(LevelError, TypeUpdateStalled, "NotOffered", UIDNotOffered, "the release is not offered")
	f.Description = fmt.Sprintf("channel %q does not offer %s as an update from %s", text.Excerpt(in.Version.Channel), in.Target, text.Excerpt(in.Version.Installed))
	f.Remedy = "Select a channel that offers the release."
	return []Finding{f}
}

// isRunning reports whether the cluster is at the target or being updated to it. Such a release is no longer
// offered.
func (f Facts) isRunning() bool { return f.Version.Current.Version == f.Target }

// findOtherUpdate returns a finding for a requested or running update that this one would replace.
func findOtherUpdate(in Facts, _ RulePhase) []Finding {
	if unknown, is := controlPlaneUpdating(in.Version, in.Now); is && unknown.Reason == reasonControlPlaneUnknown {
		unknown.ID = unknown.PlanUID()
		return []Finding{unknown}
	}
	if in.isRunning() || in.Version.Observe(clusterstate.Target{Version: in.Target}) != clusterstate.ObservedOther && !in.UpdatingControlPlane() {
		return nil
	}
	release, state, description, remedy := in.Version.Current, "in progress", in.Version.Progressing.MessageOrReason(), "Wait until that update is complete."
	if !in.UpdatingControlPlane() {
		release, state, description = in.Version.Requested.Release, "requested", "the request in spec.desiredUpdate of the ClusterVersion may begin at any time"
		remedy += ` "oc adm upgrade --clear" withdraws the request.`
	}
	f := about(LevelError, TypeUpdateStalled, "UpdateInProgress", NewUID("in-progress", text.Excerpt(cmp.Or(release.Version, release.Image))), "an update to "+release.String()+" is "+state)
	f.Description, f.Remedy = description, remedy
	return []Finding{f}
}

func findUpgradeable(in Facts, _ RulePhase) []Finding {
	c := in.Version.Upgradeable
	if !in.crossesMinor() || in.Version.MayLeaveMinor() == clusterstate.Yes {
		return nil
	}
	f := about(LevelError, TypeUpdateStalled, "NotUpgradeable", NewUID("upgradeable", cmp.Or(text.Excerpt(c.Reason), "Unknown")),
		"the cluster is not ready for another minor version: "+c.MessageOrReason())
	f.Description, f.Since = c.MessageOrReason(), c.Since
	return []Finding{f}
}

func findAdminAcks(in Facts, _ RulePhase) []Finding {
	var found []Finding
	for _, gate := range in.Plan.Gates {
		if !in.crossesMinor() || gate.Acked || !gate.Applies(in.Version.Installed) {
			continue
		}
		f := about(LevelError, TypeUpdateStalled, "AdminAckRequired", NewUID("admin-ack", gate.Name), "an acknowledgment is required: "+text.Excerpt(gate.Name))
		f.Resources = []Resource{{Kind: "ConfigMap", Namespace: "openshift-config", Name: "admin-acks"}}
		f.Description = gate.Description
		f.Remedy = fmt.Sprintf(`Follow the description, then acknowledge it: oc -n openshift-config patch configmap admin-acks --type=merge --patch '{"data":{%q:"true"}}'`, gate.Name)
		found = append(found, f)
	}
	return found
}

func findRemovedAPIs(in Facts, _ RulePhase) []Finding {
	var found []Finding
	for _, api := range in.Plan.APIs {
		removed := api.RemovedBy(in.Target)
		if api.Requests <= 0 || removed == clusterstate.No {
			continue
		}
		f := about(LevelError, TypeApplicationOutage, "RemovedAPIInUse", NewUID("removed-api", api.Resource), "clients use an API that the release removes: "+text.Excerpt(api.Resource))
		f.Resources = []Resource{{Group: "apiserver.openshift.io", Kind: "APIRequestCount", Name: api.Resource}}
		f.Description = fmt.Sprintf("it is removed in Kubernetes %s and was used in the last 24 hours", api.RemovedIn)
		if len(api.Users) > 0 {
			f.Description += " by " + text.JoinNames(api.Users)
		}
		if removed == clusterstate.Unknown {
			f.Level, f.Summary = LevelWarning, "clients use an API that the release may remove: "+text.Excerpt(api.Resource)
			f.Description += "; which Kubernetes is in " + in.Target + " is unknown"
		}
		f.Remedy = "Change the clients to a later version of the API: oc get apirequestcount " + api.Resource + " -o yaml"
		found = append(found, f)
	}
	return found
}

func findCapacity(in Facts, _ RulePhase) []Finding {
	if !in.Has(SourcePodRequests) || !in.Has(SourceNodes) || !in.Has(SourcePools) || in.neverDrains() {
		return nil
	}
	byPool := map[string][]NodeLoad{}
	for i := range in.Nodes {
		node := &in.Nodes[i]
		name := clusterstate.PoolOf(in.Pools, node)
		byPool[name] = append(byPool[name], NodeLoad{Node: node.Name, Schedulable: node.Ready && !node.Cordoned, Loads: in.Plan.Loads[node.Name]})
	}
	var found []Finding
	for _, pool := range in.Pools {
		if nodes := byPool[pool.Name]; len(nodes) > 0 {
			found = append(found, Capacity(PoolLoad{Pool: pool.Name, Unavailable: pool.Slots(len(nodes)), Nodes: nodes})...)
		}
	}
	return found
}

// neverDrains reports whether the cluster has a single node, and the machine config operator updates it. It does
// not drain this node, because there is no other node for its pods.
func (f Facts) neverDrains() bool {
	machines := int32(0)
	for i := range f.Pools {
		machines += f.Pools[i].Machines
	}
	return machines == 1 && len(f.Nodes) == 1
}

// planAlerts returns findings for the relevant firing alerts. For each name and namespace, it picks the most
// severe and then the oldest.
func (f Facts) planAlerts() []Finding {
	levels := map[clusterstate.AlertWeight]Level{
		clusterstate.AlertBlocks: LevelError, clusterstate.AlertRisk: LevelWarning, clusterstate.AlertNoted: LevelInfo,
	}
	var found []Finding
	for i := range f.Alerts {
		alert := &f.Alerts[i]
		level, counts := levels[alert.Weight()]
		if !counts {
			continue
		}
		finding := about(level, TypeUnknown, "AlertFiring", "", text.Excerpt(alert.Severity)+" alert "+text.Excerpt(alert.Name)+" is firing")
		finding.Resources = []Resource{alertResource(alert, "unnamed")}
		finding.ID = finding.PlanUID()
		finding.Since, finding.Description = alert.Since, text.Sanitize(cmp.Or(alert.Annotations["summary"], alert.Annotations["message"]), text.MaxReason)
		finding.Remedy = "Resolve the cause of the alert before the update."
		found = append(found, finding)
	}
	return eachUID(found, func(same []Finding) Finding {
		return slices.MinFunc(same, func(a, b Finding) int { return cmp.Or(cmp.Compare(b.Level, a.Level), a.Since.Compare(b.Since)) })
	})
}

func findEtcd(in Facts, _ RulePhase) []Finding {
	var found []Finding
	for _, c := range in.Plan.Etcd {
		if !c.Unhealthy() {
			continue
		}
		f := about(LevelError, TypeClusterAvailability, "EtcdUnhealthy", NewUID("etcd", text.Excerpt(c.Type)), "etcd is not healthy: "+text.Excerpt(c.Type))
		if c.Type == clusterstate.EtcdMembersAvailable {
			f.Level = LevelCritical
		}
		f.Resources = []Resource{{Group: "operator.openshift.io", Kind: "Etcd", Name: "cluster"}}
		f.Description = c.MessageOrReason()
		f.Remedy = "Find out which member is not healthy: oc -n openshift-etcd get pods -o wide"
		found = append(found, f)
	}
	return found
}

// findCertificates returns findings for pool certificate bundles that expire within seven days. Nodes that
// have not received a new bundle by then are lost.
func findCertificates(in Facts, _ RulePhase) []Finding {
	var found []Finding
	for _, pool := range in.Pools {
		earliest := map[string]time.Time{}
		for _, c := range pool.Certificates {
			if before, known := earliest[c.Bundle]; !known || c.Expiry.Before(before) {
				earliest[c.Bundle] = c.Expiry
			}
		}
		for _, bundle := range slices.Sorted(maps.Keys(earliest)) {
			if earliest[bundle].Sub(in.Now) >= minCertificateLife {
				continue
			}
			f := about(LevelError, TypeClusterAvailability, "CertificateExpires", NewUID("cert", pool.Name, bundle), "a certificate of machine config pool "+pool.Name+" expires soon")
			f.Scope = ScopeWorkerPool
			f.Resources = []Resource{poolResource(pool.Name)}
			f.Description = fmt.Sprintf("bundle %s expires at %s", text.Excerpt(bundle), text.FormatTime(earliest[bundle]))
			f.Remedy = "Unpause the pool, and wait until the machine config operator has rotated the certificate."
			found = append(found, f)
		}
	}
	return found
}

// findOptionalOperators returns findings for operators that are not completely installed or do not support
// the target's minor version.
func findOptionalOperators(in Facts, _ RulePhase) []Finding {
	var found []Finding
	for _, csv := range in.Plan.OptionalOperators {
		f := about(LevelWarning, TypeUnknown, "OptionalOperatorNotReady", NewUID("csv", csv.Namespace, csv.Name), "an optional operator is not ready: "+csv.Name)
		f.Resources = []Resource{{Group: "operators.coreos.com", Kind: "ClusterServiceVersion", Namespace: csv.Namespace, Name: csv.Name}}
		switch {
		case !supports(csv.MaxVersion, in.Target):
			f.Level, f.Reason, f.ID = LevelError, "OptionalOperatorUnsupported", NewUID("csv", csv.Namespace, csv.Name, "unsupported")
			f.Summary = "an optional operator does not support the release: " + csv.Name
			f.Description = "the last minor version that it supports is " + csv.MaxVersion
			f.Remedy = "Update the operator before the cluster."
		case !csv.Succeeded():
			f.Description = text.WithReason("phase "+cmp.Or(csv.Phase, "unknown"), csv.Reason)
			f.Remedy = "Find out why the operator is not installed: oc -n " + csv.Namespace + " describe clusterserviceversion " + csv.Name
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// supports reports whether an operator with the given maximum minor version supports a release. Without a
// maximum, all releases are supported. If it cannot be parsed, none is.
func supports(maxVersion, target string) bool {
	if maxVersion == "" {
		return true
	}
	last, err := semver.ParseTolerant(maxVersion)
	if err != nil {
		return false
	}
	v, err := semver.Parse(target)
	return err == nil && (v.Major < last.Major || v.Major == last.Major && v.Minor <= last.Minor)
}

// findLock returns a finding for an upgrade in progress. An upgrade to the target itself is not a risk,
// because it may have requested this plan.
func findLock(in Facts, _ RulePhase) []Finding {
	if in.Plan.Holder == (lock.Holder{}) {
		return nil
	}
	f := about(LevelWarning, TypeUpdateStalled, "UpgradeInProgress", NewUID("lock", in.Plan.Holder.String()), "the upgrade lock is held by "+text.Excerpt(in.Plan.Holder.String()))
	f.Remedy = "Wait until that upgrade has ended, or cancel it."
	if in.Plan.HolderTarget == in.Target {
		f.Level, f.Remedy = LevelInfo, ""
	}
	return []Finding{f}
}

// unreadable returns a finding for a source that could not be read.
func (f Facts) unreadable(source FactSource) Finding {
	finding := about(LevelWarning, TypeUnknown, "Unreadable", NewUID("unreadable", strings.ReplaceAll(string(source), " ", "-")), "not checked, because it could not be read: "+string(source))
	if sources[source].required {
		finding.Level = LevelError
	}
	finding.Description = f.Missing[source].Message
	return finding
}
