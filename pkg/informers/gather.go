// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"

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

// Prometheus returns alerts. Each call is one request.
type Prometheus interface {
	// ActiveAlerts returns the alerts that fire or are pending, of every namespace.
	ActiveAlerts(context.Context) ([]clusterstate.Alert, error)
}

// Readers are what facts are read from.
type Readers struct {
	// Reader reads all kinds but pods, which are read through Live. The Update Status Controller has a
	// cache for it, see Kinds. The CLI and a dump use one reader for both.
	Reader, Live client.Reader
	// Cached reports that Reader is a cache, whose lists cost no requests.
	Cached bool
	// Prometheus is the source of alerts; nil means that none is configured.
	Prometheus Prometheus
	Clock      clock.PassiveClock
	// Memory keeps the pods and the alerts that were read last, so that they are read once a minute;
	// nil means that they are read each time.
	Memory *Memory
	// Always reads the alerts although no update is in progress, for pre-checks.
	Always bool
}

// Gather reads the facts. It never fails: what cannot be read is missing. It sends at most 12 lists
// and one other read, however many nodes the cluster has, apart from the pages of long lists.
func Gather(ctx context.Context, r Readers) Facts {
	g := gathering{Readers: r, facts: Facts{Now: r.Clock.Now(), Missing: map[Source]Missing{}}}
	g.readVersion(ctx)
	g.read(SourceOperators, func() (err error) {
		g.facts.Operators, err = clusterstate.ListClusterOperators(ctx, r.Reader)
		return err
	})
	g.read(SourceNodes, func() (err error) {
		g.facts.Nodes, err = clusterstate.GetNodes(ctx, r.Reader)
		return err
	})
	g.readPools(ctx)
	g.read(SourceConfigs, func() (err error) {
		g.facts.Configs, err = clusterstate.ListRenderedConfigs(ctx, r.Reader)
		return err
	})
	g.read(SourcePDBs, func() (err error) {
		g.facts.PDBs, err = clusterstate.ListPDBsIn(ctx, r.Reader, []string{"*"})
		return err
	})
	g.readUpgrades(ctx)
	g.readMachinePools(ctx)
	g.facts = g.facts.share()
	g.readMachineConfigImage(ctx)
	g.readDrains(ctx)
	g.readSchedules(ctx)
	g.readAlerts(ctx)
	return g.facts
}

// gathering collects the facts of one pass.
type gathering struct {
	Readers

	facts Facts
	lists int // that the API server was sent
}

// read reads a source by one list or get, and notes it as missing if that fails, or as not installed if the API server
// does not serve the kind.
func (g *gathering) read(source Source, read func() error) {
	err := read()
	if isNotInstalled(err) && !source.required() {
		return
	}
	if source != SourceClusterVersion && !g.Cached { // it is not listed
		g.lists++
	}
	if err != nil {
		missing := missingOf(err)
		if source == SourceClusterVersion && missing.Reason == MissingForbidden { // there is only one
			missing.Message = "you are not allowed to get it"
		}
		g.facts.Missing[source] = missing
		return
	}
	g.facts.Read = append(g.facts.Read, source)
}

func (s Source) required() bool {
	switch s {
	case SourceClusterVersion, SourceOperators, SourceNodes, SourcePools:
		return true
	default:
		return false
	}
}

// readVersion reads the ClusterVersion as it is stored: its Go type has no spec.versionManagement.
func (g *gathering) readVersion(ctx context.Context) {
	g.read(SourceClusterVersion, func() error {
		version, object, err := readClusterVersion(ctx, g.Reader)
		if err != nil {
			return err
		}
		g.facts.Version = clusterstate.VersionOf(version)
		g.facts.ClusterID = string(version.Spec.ClusterID)
		g.facts.VersionManagement = versionManagement(object)
		return nil
	})
}

// ReadVersion reads the facts of the ClusterVersion alone.
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

// versionManagement returns spec.versionManagement of an object; nil means that it is absent.
func versionManagement(object *unstructured.Unstructured) any {
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "versionManagement")
	if err != nil || !found {
		return nil
	}
	return value
}

// errNoPools means that the pools are missing: the machine config operator never runs without them.
var errNoPools = errors.New("there are none, although ClusterOperator machine-config exists")

// readPools reads the MachineConfigPools. A cluster without the machine config operator has none, and
// nothing is missing then.
func (g *gathering) readPools(ctx context.Context) {
	pools, err := clusterstate.ListPools(ctx, g.Reader)
	managed := !g.facts.Has(SourceOperators) || g.facts.hasOperator(clusterstate.MachineConfigOperator)
	if isNotInstalled(err) && !managed {
		return
	}
	if err == nil && len(pools) == 0 && g.facts.hasOperator(clusterstate.MachineConfigOperator) {
		err = errNoPools
	}
	g.read(SourcePools, func() error { return err })
	g.facts.Pools = pools
}

func (f Facts) hasOperator(name string) bool {
	for i := range f.Operators {
		if f.Operators[i].Name == name {
			return true
		}
	}
	return false
}

// isNotInstalled reports whether the API server does not serve the kind, or the program does not know
// it.
func isNotInstalled(err error) bool {
	var group *discovery.ErrGroupDiscoveryFailed
	return err != nil && (meta.IsNoMatchError(err) || runtime.IsNotRegisteredError(err)) && !errors.As(err, &group)
}

func missingOf(err error) Missing {
	missing := Missing{Reason: MissingUnavailable, Message: text.Reason(err.Error())}
	switch {
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
