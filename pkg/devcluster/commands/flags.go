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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/pace"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/updategraph"
)

// shape is what the flags say about a cluster.
type shape struct {
	version, channel string
	releases, pools  []string
	masters, workers int
	speed            float64
	monitoring       bool
	cvo              string

	flags *pflag.FlagSet
}

func (s *shape) bind(flags *pflag.FlagSet) {
	s.flags = flags
	flags.StringVar(&s.version, "version", "", "installed version (default 4.20.5)")
	flags.StringVar(&s.channel, "channel", "", "channel of the cluster (default: the stable one of its version)")
	flags.StringSliceVar(&s.releases, "release", nil, "a release that exists, as VERSION or VERSION=CHANNEL; may be repeated (default: the next patch release)")
	flags.IntVar(&s.masters, "masters", 0, "control plane nodes (default 3)")
	flags.IntVar(&s.workers, "workers", 0, "worker nodes (default 3)")
	flags.StringSliceVar(&s.pools, "pool", nil, "a further machine config pool, as NAME=NODES; may be repeated")
	flags.BoolVar(&s.monitoring, "monitoring", false, "run a Prometheus and an Alertmanager, too")
	flags.StringVar(&s.cvo, "cvo", "", "the cluster version operator: played, or real, which takes Linux, root and minutes (default played)")
	flags.Float64Var(&s.speed, "speed", 0, "how many times faster than the real ones the played parts are (default 60)")
}

// over returns the description of a cluster with what the flags say put over it.
func (s *shape) over(spec devcluster.Spec) (devcluster.Spec, error) {
	if s.version != "" {
		spec.Version = s.version
	}
	if s.cvo != "" {
		spec.CVO = devcluster.CVO(s.cvo)
	}
	if s.channel != "" {
		spec.Channel = s.channel
	}
	if s.flags.Changed("masters") {
		spec.Masters = s.masters
	}
	if s.flags.Changed("workers") {
		spec.Workers = s.workers
	}
	if s.flags.Changed("speed") {
		spec.Speed = pace.Speed(s.speed)
	}
	for name, value := range map[string]float64{"masters": float64(s.masters), "workers": float64(s.workers), "speed": s.speed} {
		if s.flags.Changed(name) && (!(value > 0) || math.IsInf(value, 1)) { // neither does NaN
			return spec, fmt.Errorf("--%s: is %v, must be greater than 0", name, value)
		}
	}
	if s.monitoring && spec.Monitoring == nil {
		spec.Monitoring = &monitoring.Spec{}
	}
	for _, text := range s.pools {
		name, count, found := strings.Cut(text, "=")
		nodes, err := strconv.Atoi(count)
		if !found || err != nil {
			return spec, fmt.Errorf("--pool %s: must be NAME=NODES, such as infra=2", text)
		}
		spec.Pools = append(spec.Pools, machineconfig.Pool{Name: name, Nodes: nodes})
	}
	for _, text := range s.releases {
		version, channel, found := strings.Cut(text, "=")
		if !found {
			channel = spec.WithDefaults().Channel
		}
		spec.Releases = append(spec.Releases, updategraph.Release{Version: version, Channels: []string{channel}})
	}
	return spec, nil
}
