// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// NameReadiness is the name of the built-in informer about updates that may be started.
const NameReadiness = "builtin-readiness"

// UIDNotOffered is the UID of the finding that the release is not offered.
const UIDNotOffered = "not-offered"

// ReadinessKinds are the kinds of the objects that findings before an update involve, by source. While
// a source is missing, these findings are neither confirmed nor resolved.
var ReadinessKinds = map[Source]string{
	SourceOperators: "ClusterOperator", SourceNodes: "Node", SourcePools: "MachineConfigPool",
	SourcePDBs: "PodDisruptionBudget", SourceAlerts: "Alert", SourceAPIRequests: "APIRequestCount",
	SourceAdminGates: "ConfigMap", SourceEtcd: "Etcd", SourceOptionalOperators: "ClusterServiceVersion",
	SourceLock: "Lease",
}

const (
	// minCertificateLife is how long the certificates of a pool must be valid.
	minCertificateLife = 7 * 24 * time.Hour
	// minorOfKubernetes is the difference between the minor versions of Kubernetes 1 and of OpenShift 4.
	minorOfKubernetes = 13
)

// readiness is what the checks before an update work with.
type readiness struct {
	Facts
	PlanFacts

	target string
	// crossesMinor reports that the update leaves the minor version, or that this is unknown.
	crossesMinor bool
}

// readinessChecks are the checks before an update, in the order of the findings. Each is about what
// could be read: what could not is a finding of unreadable.
var readinessChecks = []func(readiness) []checks.Finding{
	readiness.risks, readiness.offer, readiness.otherUpdate, readiness.upgradeable, readiness.adminAcks, readiness.removedAPIs,
	readiness.disruptionBudgets, readiness.capacity, readiness.version, readiness.operators, readiness.pools, readiness.nodes,
	readiness.alerts, readiness.etcd, readiness.certificates, readiness.optionalOperators, readiness.lock,
	readiness.unreadable,
}

// Readiness returns what may go wrong if the cluster is updated to the target. It is pure.
func Readiness(facts Facts, plan PlanFacts, target string) []checks.Finding {
	in := readiness{Facts: facts, PlanFacts: plan, target: target}
	change, err := facts.Version.ChangeTo(clusterstate.Target{Version: target})
	in.crossesMinor = err != nil || change.CrossesMinor()
	var found []checks.Finding
	for _, check := range readinessChecks {
		found = append(found, check(in)...)
	}
	for i := range found {
		found[i].Informer = NameReadiness
	}
	return found
}

// about returns a finding about the control plane.
func about(level checks.Level, kind checks.Type, reason, id, summary string) checks.Finding {
	return checks.Finding{ID: id, Scope: checks.ScopeControlPlane, Level: level, Type: kind, Reason: reason, Summary: summary}
}

// risks returns the known risks of the release, including those whose relevance is unknown.
func (r readiness) risks() []checks.Finding {
	var found []checks.Finding
	for _, risk := range r.Version.AvailableUpdate(clusterstate.Target{Version: r.target}).Risks {
		f := about(checks.LevelWarning, checks.TypeUnknown, "KnownRisk", checks.NewUID("risk", risk.Name), "the update has the known risk "+text.Excerpt(risk.Name))
		f.Description, f.Remedy = text.Reason(risk.Message), "Read about the risk, and accept it or select another release."
		if strings.HasPrefix(risk.URL, "https://") {
			f.Reference = risk.URL
		}
		found = append(found, f)
	}
	return found
}

// RiskOf returns the name of the risk that a finding of Readiness with a UID is about; false means that it
// is about something else.
func RiskOf(uid string) (string, bool) { return strings.CutPrefix(uid, "risk/") }

// offer returns why the release cannot be requested by its version.
func (r readiness) offer() []checks.Finding {
	if !r.Facts.Has(SourceClusterVersion) || r.isRunning() {
		return nil
	}
	update := r.Version.AvailableUpdate(clusterstate.Target{Version: r.target})
	switch unknown := r.Version.UpdatesUnknown(); {
	case update.Ambiguous:
		f := about(checks.LevelWarning, checks.TypeUnknown, "AmbiguousOffer", "ambiguous-offer", "several images of the release are offered")
		f.Remedy = "Select a channel that offers one of them, or request the update with its image."
		return []checks.Finding{f}
	case update.Available:
		return nil
	case unknown != "":
		f := about(checks.LevelError, checks.TypeUpdateStalled, "UpdatesUnknown", UIDNotOffered, "it is unknown whether the release is offered")
		f.Description = unknown
		return []checks.Finding{f}
	}
	f := about(checks.LevelError, checks.TypeUpdateStalled, "NotOffered", UIDNotOffered, "the release is not offered")
	f.Description = fmt.Sprintf("channel %q does not offer %s as an update from %s", text.Excerpt(r.Version.Channel), r.target, text.Excerpt(r.Version.Installed))
	f.Remedy = "Select a channel that offers the release."
	return []checks.Finding{f}
}

// isRunning reports whether the cluster is at the target or being updated to it. Such a release is not
// offered any more.
func (r readiness) isRunning() bool { return r.Version.Current.Version == r.target }

// otherUpdate returns the update that another one would replace.
func (r readiness) otherUpdate() []checks.Finding {
	release, updating := r.Version.UpdatingTo()
	if !updating || r.isRunning() {
		return nil
	}
	f := about(checks.LevelError, checks.TypeUpdateStalled, "UpdateInProgress", checks.NewUID("in-progress", text.Excerpt(release.Version)), "an update to "+release.String()+" is in progress")
	f.Description = r.Version.Progressing.MessageOrReason()
	f.Remedy = "Wait until that update is complete."
	return []checks.Finding{f}
}

// upgradeable returns why the cluster may not leave its minor version. The cluster version operator
// drops the condition of a cluster that may.
func (r readiness) upgradeable() []checks.Finding {
	c := r.Version.Upgradeable
	if !r.crossesMinor || c.Status == "" || c.IsTrue() {
		return nil
	}
	f := about(checks.LevelError, checks.TypeUpdateStalled, "NotUpgradeable", checks.NewUID("upgradeable", cmp.Or(text.Excerpt(c.Reason), "Unknown")),
		"the cluster is not ready for another minor version")
	f.Description, f.Since = c.MessageOrReason(), c.Since
	return []checks.Finding{f}
}

// adminAcks returns what an administrator has not acknowledged.
func (r readiness) adminAcks() []checks.Finding {
	var found []checks.Finding
	for _, gate := range r.Gates {
		if !r.crossesMinor || gate.Acked || !gate.Applies(r.Version.Installed) {
			continue
		}
		f := about(checks.LevelError, checks.TypeUpdateStalled, "AdminAckRequired", checks.NewUID("admin-ack", gate.Name), "an acknowledgment is required: "+text.Excerpt(gate.Name))
		f.Resources = []checks.Resource{{Kind: "ConfigMap", Namespace: "openshift-config", Name: "admin-acks"}}
		f.Description = gate.Description
		f.Remedy = fmt.Sprintf(`Follow the description, then acknowledge it: oc -n openshift-config patch configmap admin-acks --type=merge --patch '{"data":{%q:"true"}}'`, gate.Name)
		found = append(found, f)
	}
	return found
}

// removedAPIs returns the APIs that clients use and that the target removes.
func (r readiness) removedAPIs() []checks.Finding {
	var found []checks.Finding
	for _, api := range r.APIs {
		if api.Requests <= 0 || !removedBy(api.RemovedIn, r.target) {
			continue
		}
		f := about(checks.LevelError, checks.TypeApplicationOutage, "RemovedAPIInUse", checks.NewUID("removed-api", api.Resource), "clients use an API that the release removes: "+text.Excerpt(api.Resource))
		f.Resources = []checks.Resource{{Group: "apiserver.openshift.io", Kind: "APIRequestCount", Name: api.Resource}}
		f.Description = fmt.Sprintf("it is removed in Kubernetes %s and was used in the last 24 hours", api.RemovedIn)
		if len(api.Users) > 0 {
			f.Description += " by " + text.JoinNames(api.Users)
		}
		f.Remedy = "Change the clients to a later version of the API: oc get apirequestcount " + api.Resource + " -o yaml"
		found = append(found, f)
	}
	return found
}

// removedBy reports whether a minor release of Kubernetes is part of a release of OpenShift, or that
// this cannot be determined.
func removedBy(kubernetes, target string) bool {
	v, err := semver.Parse(target)
	var major, minor uint64
	if n, _ := fmt.Sscanf(kubernetes, "%d.%d", &major, &minor); err != nil || n != 2 || v.Major != 4 || major != 1 {
		return true
	}
	return minor <= v.Minor+minorOfKubernetes
}

// disruptionBudgets returns the budgets that block a drain.
func (r readiness) disruptionBudgets() []checks.Finding {
	found := checks.PDBs(r.PDBs)
	for i := range found {
		if found[i].Reason == checks.ReasonPDBBlocksEviction {
			found[i].Remedy = "Add a replica, or change the budget so that it allows a disruption."
		}
		found[i].ID, found[i].Level = found[i].PlanUID(), checks.LevelWarning
	}
	return found
}

// capacity returns the pools whose nodes cannot be drained without pending pods.
func (r readiness) capacity() []checks.Finding {
	if !r.PlanFacts.Has(SourcePodRequests) || !r.Facts.Has(SourceNodes) || !r.Facts.Has(SourcePools) {
		return nil
	}
	byPool := map[string]*checks.PoolLoad{}
	for _, node := range r.Nodes.All() {
		name := clusterstate.PoolOf(r.Pools, node)
		if name == "" {
			continue
		}
		if byPool[name] == nil {
			byPool[name] = &checks.PoolLoad{Pool: name}
		}
		byPool[name].Nodes = append(byPool[name].Nodes, checks.NodeLoad{Node: node.Name, Schedulable: node.Ready && !node.Cordoned, Loads: r.Loads[node.Name]})
	}
	var found []checks.Finding
	for _, pool := range r.Pools {
		load := byPool[pool.Name]
		if load == nil {
			continue
		}
		load.Unavailable = pool.Slots(len(load.Nodes))
		for _, f := range checks.Capacity(*load) {
			f.ID = checks.NewUID("capacity", pool.Name)
			if f.Reason == checks.ReasonCapacityUnknown {
				f.ID = checks.NewUID("unreadable", f.ID)
			}
			found = append(found, f)
		}
	}
	return found
}

// version returns whether the cluster version operator is failing.
func (r readiness) version() []checks.Finding {
	found := checks.Version(r.Version)
	for i := range found {
		found[i].ID = found[i].PlanUID()
	}
	return found
}

// operators returns the ClusterOperators that are not healthy.
func (r readiness) operators() []checks.Finding {
	found, err := checks.Operators(r.Operators, checks.Options{})
	for i := range found {
		found[i].ID = found[i].PlanUID()
	}
	if err != nil {
		f := about(checks.LevelWarning, checks.TypeUnknown, "OperatorStateUnknown", "unreadable/operator", "cluster operators do not report their state")
		f.Description = text.Reason(err.Error())
		found = append(found, f)
	}
	return found
}

// pools returns the pools that are degraded or paused. Those that the operator unpauses in their time
// are no risk.
func (r readiness) pools() []checks.Finding {
	found := checks.Pools(r.Pools, checks.Options{IgnoreDelayedPools: true}, r.Now)
	for i := range found {
		found[i].ID = found[i].PlanUID()
	}
	return found
}

// nodes returns the nodes that are not healthy. Whether the Machine of a cordoned node is being deleted
// is not known here.
func (r readiness) nodes() []checks.Finding {
	notDeleted := func(clusterstate.Node) (bool, error) { return false, nil }
	found, err := checks.Nodes(r.Nodes, checks.Options{}, notDeleted)
	if err != nil { // notDeleted returns none
		return nil
	}
	for i := range found {
		found[i].ID = found[i].PlanUID()
	}
	return found
}

// alerts returns the critical and warning alerts that fire, each name and namespace once.
func (r readiness) alerts() []checks.Finding {
	levels := map[string]checks.Level{"critical": checks.LevelError, "warning": checks.LevelInfo}
	byID := map[string]checks.Finding{}
	for i := range r.Alerts {
		alert := &r.Alerts[i]
		level, known := levels[alert.Severity]
		if !alert.Firing || !known || strings.HasPrefix(alert.Name, checks.OwnAlerts) {
			continue
		}
		f := about(level, checks.TypeUnknown, "AlertFiring", "", text.Excerpt(alert.Severity)+" alert "+text.Excerpt(alert.Name)+" is firing")
		f.Resources = []checks.Resource{{Group: "monitoring.coreos.com", Kind: "Alert", Namespace: text.Excerpt(alert.Namespace), Name: cmp.Or(text.Excerpt(alert.Name), "unnamed")}}
		f.ID = f.PlanUID()
		f.Since, f.Description = alert.Since, text.Sanitize(cmp.Or(alert.Annotations["summary"], alert.Annotations["message"]), text.MaxReason)
		f.Remedy = "Resolve the cause of the alert before the update."
		if before, again := byID[f.ID]; again && (before.Level > f.Level || before.Level == f.Level && !before.Since.After(f.Since)) {
			continue
		}
		byID[f.ID] = f
	}
	var found []checks.Finding
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		found = append(found, byID[id])
	}
	return found
}

// etcd returns the conditions of etcd that are bad news.
func (r readiness) etcd() []checks.Finding {
	var found []checks.Finding
	for _, c := range r.Etcd {
		if !c.Unhealthy() {
			continue
		}
		f := about(checks.LevelError, checks.TypeClusterAvailability, "EtcdUnhealthy", checks.NewUID("etcd", text.Excerpt(c.Type)), "etcd is not healthy: "+text.Excerpt(c.Type))
		if c.Type == clusterstate.EtcdMembersAvailable {
			f.Level = checks.LevelCritical
		}
		f.Resources = []checks.Resource{{Group: "operator.openshift.io", Kind: "Etcd", Name: "cluster"}}
		f.Description = c.MessageOrReason()
		f.Remedy = "Find out which member is not healthy: oc -n openshift-etcd get pods -o wide"
		found = append(found, f)
	}
	return found
}

// certificates returns the bundles of pools with a certificate that expires within seven days: a pool
// whose nodes are not updated by then loses them.
func (r readiness) certificates() []checks.Finding {
	var found []checks.Finding
	for _, pool := range r.Pools {
		earliest := map[string]time.Time{}
		for _, c := range pool.Certificates {
			if before, known := earliest[c.Bundle]; !known || c.Expiry.Before(before) {
				earliest[c.Bundle] = c.Expiry
			}
		}
		for _, bundle := range slices.Sorted(maps.Keys(earliest)) {
			if earliest[bundle].Sub(r.Now) >= minCertificateLife {
				continue
			}
			f := about(checks.LevelError, checks.TypeClusterAvailability, "CertificateExpires", checks.NewUID("cert", pool.Name, bundle), "a certificate of machine config pool "+pool.Name+" expires soon")
			f.Scope = checks.ScopeWorkerPool
			f.Resources = []checks.Resource{{Group: mcfgv1.GroupName, Kind: "MachineConfigPool", Name: pool.Name}}
			f.Description = fmt.Sprintf("bundle %s expires at %s", text.Excerpt(bundle), earliest[bundle].UTC().Format(time.RFC3339))
			f.Remedy = "Unpause the pool, and wait until the machine config operator has rotated the certificate."
			found = append(found, f)
		}
	}
	return found
}

// optionalOperators returns the operators that are not installed completely, and those that do not
// support the minor version of the target.
func (r readiness) optionalOperators() []checks.Finding {
	var found []checks.Finding
	for _, csv := range r.OptionalOperators {
		f := about(checks.LevelWarning, checks.TypeUnknown, "OptionalOperatorNotReady", checks.NewUID("csv", csv.Namespace, csv.Name), "an optional operator is not ready: "+csv.Name)
		f.Resources = []checks.Resource{{Group: "operators.coreos.com", Kind: "ClusterServiceVersion", Namespace: csv.Namespace, Name: csv.Name}}
		switch {
		case !supports(csv.MaxVersion, r.target):
			f.Level, f.Reason, f.ID = checks.LevelError, "OptionalOperatorUnsupported", checks.NewUID("csv", csv.Namespace, csv.Name, "unsupported")
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

// supports reports whether an operator with that last minor version supports a release. An operator
// that names none supports every release, one whose version cannot be read none.
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

// lock returns the upgrade that is in progress. One to the target is no risk: it may have requested
// this plan.
func (r readiness) lock() []checks.Finding {
	if r.Holder == (lock.Holder{}) {
		return nil
	}
	f := about(checks.LevelWarning, checks.TypeUpdateStalled, "UpgradeInProgress", checks.NewUID("lock", r.Holder.String()), "the upgrade lock is held by "+text.Excerpt(r.Holder.String()))
	f.Remedy = "Wait until that upgrade has ended, or cancel it."
	if r.HolderTarget == r.target {
		f.Level, f.Remedy = checks.LevelInfo, ""
	}
	return []checks.Finding{f}
}

// unreadable returns the sources that could not be read: what they would show is unknown.
func (r readiness) unreadable() []checks.Finding {
	used := []Source{
		SourceClusterVersion, SourceOperators, SourceNodes, SourcePools, SourcePDBs, SourceAlerts,
		SourceAPIRequests, SourceAdminGates, SourceEtcd, SourceOptionalOperators, SourceLock, SourcePodRequests,
	}
	var found []checks.Finding
	for _, source := range used {
		missing, is := r.Facts.Missing[source]
		if !is {
			missing, is = r.PlanFacts.Missing[source]
		}
		if !is || source == SourceAdminGates && !r.crossesMinor {
			continue
		}
		f := about(checks.LevelWarning, checks.TypeUnknown, "Unreadable", checks.NewUID("unreadable", strings.ReplaceAll(string(source), " ", "-")), "not checked, because it could not be read: "+string(source))
		if source.required() {
			f.Level = checks.LevelError
		}
		f.Description = missing.Message
		found = append(found, f)
	}
	return found
}
