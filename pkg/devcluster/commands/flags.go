// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// clusterFlags are the flags that describe a cluster.
type clusterFlags struct {
	version, channel string
	releases, pools  []string
	masters, workers int
	speed            float64
	monitoring       bool
	cvo              string

	flags *pflag.FlagSet
}

func (f *clusterFlags) bind(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.version, "version", "", "installed version (default 4.20.5)")
	flags.StringVar(&f.channel, "channel", "", "channel of the cluster (default: the stable one of its version)")
	flags.StringSliceVar(&f.releases, "release", nil, "additional release, as VERSION or VERSION=CHANNEL; may be repeated (default: the next patch release)")
	flags.IntVar(&f.masters, "masters", 0, "control plane nodes (default 3)")
	flags.IntVar(&f.workers, "workers", 0, "worker nodes (default 3)")
	flags.StringSliceVar(&f.pools, "pool", nil, "additional machine config pool, as NAME=NODES; may be repeated")
	flags.BoolVar(&f.monitoring, "monitoring", false, "run Prometheus and Alertmanager")
	flags.StringVar(&f.cvo, "cvo", "", "cluster version operator: simulated, or real, which requires Linux and root (default simulated)")
	flags.Float64Var(&f.speed, "speed", 0, "speed of the simulated parts relative to real ones (default 60)")
}

// validateNumbers returns an error if a number set on the command line is not positive and finite.
func (f *clusterFlags) validateNumbers() error {
	for name, value := range map[string]float64{"masters": float64(f.masters), "workers": float64(f.workers), "speed": f.speed} {
		if f.flags.Changed(name) && (!(value > 0) || math.IsInf(value, 1)) { // NaN is not greater either
			return fmt.Errorf("--%s: is %v, must be greater than 0", name, value)
		}
	}
	return nil
}

// applyTo returns the description of a cluster with the flags applied.
func (f *clusterFlags) applyTo(spec openshiftsim.ClusterSpec) (openshiftsim.ClusterSpec, error) {
	if f.version != "" {
		spec.Version = f.version
	}
	if f.cvo != "" {
		spec.CVO = openshiftsim.CVO(f.cvo)
	}
	if f.channel != "" {
		spec.Channel = f.channel
	}
	if f.flags.Changed("masters") {
		spec.Masters = f.masters
	}
	if f.flags.Changed("workers") {
		spec.Workers = f.workers
	}
	if f.flags.Changed("speed") {
		spec.Speed = timescale.Speed(f.speed)
	}
	if err := f.validateNumbers(); err != nil {
		return spec, err
	}
	if f.monitoring && spec.Monitoring == nil {
		spec.Monitoring = &alerting.Spec{}
	}
	for _, text := range f.pools {
		name, count, found := strings.Cut(text, "=")
		nodes, err := strconv.Atoi(count)
		if !found || err != nil {
			return spec, fmt.Errorf("--pool %s: must be NAME=NODES, such as infra=2", text)
		}
		spec.Pools = append(spec.Pools, machineconfig.Pool{Name: name, Nodes: nodes})
	}
	for _, text := range f.releases {
		version, channel, found := strings.Cut(text, "=")
		if !found {
			channel = spec.WithDefaults().Channel
		}
		spec.Releases = append(spec.Releases, updategraph.Release{Version: version, Channels: []string{channel}})
	}
	if len(f.releases) > 0 {
		spec = offerInstalled(spec)
	}
	return spec, nil
}

// offerInstalled adds the installed release to the channels of all releases unless the description
// includes it: a channel offers updates only if it contains the installed release.
func offerInstalled(spec openshiftsim.ClusterSpec) openshiftsim.ClusterSpec {
	complete := spec.WithDefaults()
	for _, release := range spec.Releases {
		if release.Version == complete.Version {
			return spec
		}
	}
	spec.Releases = append(spec.Releases, updategraph.Release{Version: complete.Version, Channels: channels(complete)})
	return spec
}
