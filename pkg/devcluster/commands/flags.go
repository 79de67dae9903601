// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/monitoring"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/updategraph"
)

// clusterFlags is what the flags say about a cluster.
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
	flags.StringSliceVar(&f.releases, "release", nil, "a release that exists, as VERSION or VERSION=CHANNEL; may be repeated (default: the next patch release)")
	flags.IntVar(&f.masters, "masters", 0, "control plane nodes (default 3)")
	flags.IntVar(&f.workers, "workers", 0, "worker nodes (default 3)")
	flags.StringSliceVar(&f.pools, "pool", nil, "a further machine config pool, as NAME=NODES; may be repeated")
	flags.BoolVar(&f.monitoring, "monitoring", false, "run a Prometheus and an Alertmanager, too")
	flags.StringVar(&f.cvo, "cvo", "", "the cluster version operator: played, or real, which takes Linux, root and minutes (default played)")
	flags.Float64Var(&f.speed, "speed", 0, "how many times faster than the real ones the played parts are (default 60)")
}

// applyTo returns the description of a cluster with what the flags say put over it.
func (f *clusterFlags) applyTo(spec devcluster.Spec) (devcluster.Spec, error) {
	if f.version != "" {
		spec.Version = f.version
	}
	if f.cvo != "" {
		spec.CVO = devcluster.CVO(f.cvo)
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
	for name, value := range map[string]float64{"masters": float64(f.masters), "workers": float64(f.workers), "speed": f.speed} {
		if f.flags.Changed(name) && (!(value > 0) || math.IsInf(value, 1)) { // neither does NaN
			return spec, fmt.Errorf("--%s: is %v, must be greater than 0", name, value)
		}
	}
	if f.monitoring && spec.Monitoring == nil {
		spec.Monitoring = &monitoring.Spec{}
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
	return spec, nil
}
