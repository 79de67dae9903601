// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// AlertSource returns alerts. Each call sends one request.
type AlertSource interface {
	// ActiveAlerts returns the firing and pending alerts of all namespaces.
	ActiveAlerts(context.Context) ([]clusterstate.Alert, error)
}

// Readers holds the sources of facts: a cache, the API server, or a dump.
type Readers struct {
	// Reader reads everything except pods, and Live reads pods. Programs on a cluster use a cache for Reader.
	// The CLI uses a single reader for both, including for dumps.
	Reader, Live client.Reader
	// Cached is set if Reader is a cache, so its lists cost no requests.
	Cached bool
	// Prometheus is the source of alerts, and Metrics the source of pod requests. They are nil if not
	// configured. Gates use Sources instead.
	Prometheus AlertSource
	Metrics    MetricsQuerier
	// LockNamespace is the namespace of the upgrade lock.
	LockNamespace string
	Clock         clock.PassiveClock
	// Sources limits how often uncached data is read. If nil, it is read every time.
	Sources *Sources
}

// gathering reads the facts for one pass. Only gathering reads what the rules need. For a gate, each rule's
// needs are read when it is the rule's turn.
type gathering struct {
	Readers

	phase RulePhase
	facts Facts
	tried map[FactSource]bool
	lists int     // sent to the API server
	errs  []error // of a gate
	// urgent is set while no earlier rule has found anything, so the gate depends on the current rule alone.
	// retry is the time until queries can be repeated, or 0 for never.
	urgent bool
	retry  time.Duration
}

func newGathering(phase RulePhase, r Readers) *gathering {
	return &gathering{Readers: r, phase: phase, tried: map[FactSource]bool{}, facts: Facts{Missing: map[FactSource]Missing{}}}
}

// gathered lists the sources that are always read for plans and updates, in this order.
var gathered = []FactSource{
	SourceClusterVersion, SourceOperators, SourceNodes, SourcePools, SourceConfigs, SourcePDBs, SourceUpgradeConfigs, SourceUpgradeJobs,
	SourceMachineSets, SourceClusterMachineSets, SourceMachineDeployments, SourceNodePools,
}

// Gather reads the facts for an update, or the ones that a plan shares with an update. It never fails:
// sources that cannot be read are missing. It sends at most 12 lists and one other read regardless of the
// number of nodes, not counting further pages of long lists.
func Gather(ctx context.Context, phase RulePhase, r Readers) Facts {
	g := newGathering(phase, r)
	g.facts.Now = r.Clock.Now()
	g.need(ctx, gathered...)
	g.sort()
	g.facts = g.facts.share()
	g.readMachineConfigImage(ctx)
	if g.lists < maxLists && slices.ContainsFunc(g.facts.Rollouts(), func(p clusterstate.PoolProgress) bool { return p.Waits() }) {
		g.need(ctx, SourceImageBuilds)
	}
	g.readDrains(ctx)
	if phase == Plan && g.facts.Has(SourcePDBs) {
		_ = readOverlaps(ctx, g) // the facts name the namespaces that could not be compared
	}
	g.forgetPods()
	if !g.facts.Updating() { // otherwise the UpgradeJob represents the schedule
		g.need(ctx, SourceSchedules)
		slices.SortFunc(g.facts.Schedules, func(a, b Schedule) int { return a.Resource.compare(b.Resource) })
	}
	if phase == Plan || g.facts.Updating() {
		g.need(ctx, SourceAlerts)
	}
	return g.facts
}

// need reads the sources that have not been read yet. It reports whether all of them are available.
func (g *gathering) need(ctx context.Context, needed ...FactSource) bool {
	complete := true
	for _, source := range needed {
		if !g.tried[source] {
			g.tried[source] = true
			g.note(source, sources[source].read(ctx, g))
		}
		complete = complete && g.facts.Has(source)
	}
	return complete
}

// note records whether a source was read, is missing, or is not installed.
func (g *gathering) note(source FactSource, err error) {
	if isNotInstalled(err) && !sources[source].required && g.phase != Gate || errors.Is(err, errNotManaged) {
		return
	}
	if source != SourceClusterVersion && !g.Cached { // the ClusterVersion is not listed
		g.lists++
	}
	if err != nil {
		missing := missingOf(err)
		if source == SourceClusterVersion && missing.Reason == MissingForbidden { // there is only one object
			missing.Message = "you are not allowed to get it"
		}
		g.facts.Missing[source] = missing
		g.errs = append(g.errs, err)
		return
	}
	g.facts.Read = append(g.facts.Read, source)
}

func readPDBs(ctx context.Context, g *gathering) (err error) {
	namespaces := []string{"*"}
	if g.phase == Gate {
		namespaces = g.facts.Options.PDBNamespaces
	}
	g.facts.PDBs, err = clusterstate.ListPDBsIn(ctx, g.Reader, namespaces)
	return err
}

func (g *gathering) sort() {
	slices.SortFunc(g.facts.Upgrades, func(a, b Upgrade) int { return a.Resource.compare(b.Resource) })
	slices.SortFunc(g.facts.MachinePools, func(a, b MachinePool) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), a.Resource.compare(b.Resource))
	})
}

// readVersion reads the ClusterVersion as stored. The Go type in the cache of gates lacks
// spec.versionManagement.
func readVersion(ctx context.Context, g *gathering) (err error) {
	if g.phase == Gate {
		g.facts.Version, err = clusterstate.GetClusterVersion(ctx, g.Reader)
		return err
	}
	version, object, err := readClusterVersion(ctx, g.Reader)
	if err != nil {
		return err
	}
	g.facts.Version = clusterstate.VersionOf(version)
	g.facts.ClusterID = string(version.Spec.ClusterID)
	g.facts.VersionManagement = versionManagement(object)
	return nil
}

// ReadVersion reads only the facts about the ClusterVersion.
func ReadVersion(ctx context.Context, r client.Reader) (clusterstate.Version, error) {
	version, _, err := readClusterVersion(ctx, r)
	if err != nil {
		return clusterstate.Version{}, fmt.Errorf("getting the cluster version: %w", err)
	}
	return clusterstate.VersionOf(version), nil
}

func readClusterVersion(ctx context.Context, r client.Reader) (*configv1.ClusterVersion, *unstructured.Unstructured, error) {
	var object unstructured.Unstructured
	object.SetGroupVersionKind(configv1.GroupVersion.WithKind("ClusterVersion"))
	if err := r.Get(ctx, clusterstate.VersionKey, &object); err != nil {
		return nil, nil, err
	}
	var version configv1.ClusterVersion
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &version); err != nil {
		return nil, nil, err
	}
	return &version, &object, nil
}

// versionManagement returns spec.versionManagement of an object, or nil if it is absent.
func versionManagement(object *unstructured.Unstructured) any {
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "versionManagement")
	if err != nil || !found {
		return nil
	}
	return value
}

var (
	// errNoPools is returned if pools are missing, because the machine config operator always has pools.
	errNoPools = errors.New("there are none, although ClusterOperator machine-config exists")
	// errNotManaged is returned if the cluster has no pools and needs none.
	errNotManaged = errors.New("the cluster has no machine config operator")
)

// readPools reads the MachineConfigPools. Clusters without the machine config operator have none.
func readPools(ctx context.Context, g *gathering) (err error) {
	g.facts.Pools, err = clusterstate.ListPools(ctx, g.Reader)
	if g.phase == Gate {
		return err
	}
	managed := g.facts.hasOperator(clusterstate.MachineConfigOperator)
	switch {
	case isNotInstalled(err) && g.facts.Has(SourceOperators) && !managed:
		return errNotManaged
	case err == nil && len(g.facts.Pools) == 0 && managed:
		return errNoPools
	}
	return err
}

func (f Facts) hasOperator(name string) bool {
	return slices.ContainsFunc(f.Operators, func(o clusterstate.ClusterOperator) bool { return o.Name == name })
}

// isNotInstalled reports whether the kind is unknown to the API server or to the program.
func isNotInstalled(err error) bool {
	var group *discovery.ErrGroupDiscoveryFailed
	return err != nil && (meta.IsNoMatchError(err) || runtime.IsNotRegisteredError(err)) && !errors.As(err, &group)
}

func missingOf(err error) Missing {
	missing := Missing{Reason: MissingUnavailable, Message: text.Reason(err.Error())}
	switch {
	case errors.Is(err, errNoPrometheus):
		missing.Reason = MissingNotConfigured
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		missing.Reason, missing.Message = MissingForbidden, "you are not allowed to list them"
	case isNotInstalled(err):
		missing.Reason, missing.Message = MissingNotInstalled, "the API server does not serve this kind"
	case apierrors.IsNotFound(err):
		missing.Reason = MissingNotFound
	case errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err):
		missing.Message = "no answer in time"
	}
	return missing
}
