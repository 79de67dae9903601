// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/machineapi"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/monitoring"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/updategraph"
)

// Spec describes a cluster. The zero Spec is a small healthy one with an update to the next patch release.
type Spec struct {
	// Version is what is installed, 4.20.5 by default.
	Version string `json:"version,omitempty"`
	// Channel is the ClusterVersion's channel, the stable one of the version by default.
	Channel string `json:"channel,omitempty"`
	// Releases exist beside the installed one. By default that is the next patch release, in the cluster's channel.
	Releases []updategraph.Release `json:"releases,omitempty"`
	// Operators behave otherwise than they do by default, or exist in addition to the default ones.
	Operators []cvo.Operator `json:"operators,omitempty"`
	// Masters and Workers are how many nodes the pools of those names have, 3 by default.
	Masters int `json:"masters,omitempty"`
	Workers int `json:"workers,omitempty"`
	// Pools are further machine config pools, or say more of the pools master and worker.
	Pools []machineconfig.Pool `json:"pools,omitempty"`
	// MachineSets have made the workers, and make further ones: one by default, and none if the list is empty.
	MachineSets []machineapi.MachineSet `json:"machineSets,omitempty"`
	// Nodes behave otherwise than others.
	Nodes []machineconfig.Node `json:"nodes,omitempty"`
	// Monitoring has a Prometheus and an Alertmanager run; without it there are none.
	Monitoring *monitoring.Spec `json:"monitoring,omitempty"`
	// CVO says whether the cluster version operator is played, as it is by default, or the real one, which takes Linux and
	// root. What the real one does takes as long as it takes, whatever the Speed.
	CVO CVO `json:"cvo,omitempty"`
	// Speed is how many times faster than the real ones the played parts are, 60 by default.
	Speed timescale.Speed `json:"speed,omitempty"`
}

// CVO says who the cluster version operator is.
type CVO string

// The cluster version operators.
const (
	Simulated CVO = "played"
	Real      CVO = "real"
)

const (
	defaultSpeed = 60
	defaultNodes = 3
	maxNodes     = 2000 // which take an API server 1.8 GiB
)

// WithDefaults returns the spec with everything filled in.
func (s Spec) WithDefaults() Spec {
	s.Version = cmp.Or(s.Version, "4.20.5")
	s.CVO = cmp.Or(s.CVO, Simulated)
	s.Speed = cmp.Or(s.Speed, defaultSpeed)
	s.Masters = cmp.Or(s.Masters, defaultNodes)
	s.Workers = cmp.Or(s.Workers, defaultNodes)
	s.Pools = pools(s)
	if s.MachineSets == nil {
		s.MachineSets = []machineapi.MachineSet{{Name: infrastructureName + "-worker-a"}}
	}
	version, err := semver.Parse(s.Version)
	if err != nil {
		return s // Validate tells
	}
	s.Channel = cmp.Or(s.Channel, fmt.Sprintf("stable-%d.%d", version.Major, version.Minor))
	releases := slices.Clone(s.Releases)
	if len(releases) == 0 {
		next := version
		next.Patch++
		releases = append(releases, updategraph.Release{Version: next.String(), Channels: []string{s.Channel}})
	}
	if !slices.ContainsFunc(releases, func(r updategraph.Release) bool { return r.Version == s.Version }) {
		releases = append(releases, updategraph.Release{Version: s.Version, Channels: []string{s.Channel}})
	}
	s.Releases = releases
	s.Operators = operators(s.Operators)
	for i := range s.Operators {
		s.Operators[i].External = s.Operators[i].Name == cvo.MachineConfig
	}
	return s
}

// pools returns those that every cluster has, and the others.
func pools(s Spec) []machineconfig.Pool {
	all := []machineconfig.Pool{{Name: machineconfig.Master}, {Name: machineconfig.Worker}}
	for _, pool := range s.Pools {
		switch pool.Name {
		case machineconfig.Master:
			all[0] = pool
		case machineconfig.Worker:
			all[1] = pool
		default:
			all = append(all, pool)
		}
	}
	all[0].Nodes, all[1].Nodes = cmp.Or(all[0].Nodes, s.Masters), cmp.Or(all[1].Nodes, s.Workers)
	return all
}

// operators returns the default ones, changed as the special ones say. Others come first: the machine config operator
// is the last one.
func operators(special []cvo.Operator) []cvo.Operator {
	all := cvo.DefaultOperators()
	for _, operator := range special {
		index := slices.IndexFunc(all, func(known cvo.Operator) bool { return known.Name == operator.Name })
		if index >= 0 {
			all[index] = operator
		} else {
			all = slices.Insert(all, 0, operator)
		}
	}
	return all
}

// Validate says what is wrong with the spec, and what would be right.
func (s Spec) Validate(path *field.Path) field.ErrorList {
	s = s.WithDefaults()
	var allErrs field.ErrorList
	if s.Speed < 0 {
		allErrs = append(allErrs, field.Invalid(path.Child("speed"), s.Speed, "must be greater than 0: 60 plays an hour in a minute"))
	}
	if s.CVO != Simulated && s.CVO != Real {
		allErrs = append(allErrs, field.NotSupported(path.Child("cvo"), s.CVO, []CVO{Simulated, Real}))
	}
	allErrs = append(allErrs, ValidateVersion(path.Child("version"), s.Version)...)
	seen := map[string]bool{}
	for i, release := range s.Releases {
		at := path.Child("releases").Index(i)
		allErrs = append(allErrs, ValidateRelease(at, release)...)
		if seen[release.Version] {
			allErrs = append(allErrs, field.Duplicate(at.Child("version"), release.Version))
		}
		seen[release.Version] = true
	}
	allErrs = append(allErrs, s.validateNodes(path)...)
	allErrs = append(allErrs, s.validateMachineSets(path.Child("machineSets"))...)
	if s.Monitoring != nil {
		allErrs = append(allErrs, s.Monitoring.Validate(path.Child("monitoring"))...)
	}
	for i, operator := range s.Operators {
		if operator.Name == "" {
			allErrs = append(allErrs, field.Required(path.Child("operators").Index(i).Child("name"), "name the ClusterOperator, such as network"))
		}
	}
	return allErrs
}

func (s Spec) validateNodes(path *field.Path) field.ErrorList {
	var allErrs field.ErrorList
	if s.Masters < 0 {
		allErrs = append(allErrs, field.Invalid(path.Child("masters"), s.Masters, "must be at least 1"))
	}
	if s.Workers < 0 {
		allErrs = append(allErrs, field.Invalid(path.Child("workers"), s.Workers, "must be at least 1"))
	}
	names, seen, all := map[string]bool{}, map[string]bool{}, 0
	for i, pool := range s.Pools {
		if all += max(pool.Nodes, 0); all > maxNodes {
			return append(allErrs, field.Invalid(path.Child("workers"), s.Workers, fmt.Sprintf("there must be at most %d nodes in all pools together", maxNodes)))
		}
		at := path.Child("pools").Index(i)
		if bad := validation.IsDNS1123Label(pool.Name); len(bad) > 0 {
			allErrs = append(allErrs, field.Invalid(at.Child("name"), pool.Name, "must be lower case letters, digits and dashes, such as infra"))
		}
		if seen[pool.Name] {
			allErrs = append(allErrs, field.Duplicate(at.Child("name"), pool.Name))
		}
		seen[pool.Name] = true
		switch {
		case pool.Nodes < 0:
			allErrs = append(allErrs, field.Invalid(at.Child("nodes"), pool.Nodes, "must not be negative"))
		case pool.Name == machineconfig.Master && pool.Nodes != s.Masters, pool.Name == machineconfig.Worker && pool.Nodes != s.Workers:
			allErrs = append(allErrs, field.Invalid(at.Child("nodes"), pool.Nodes, fmt.Sprintf("must be left out: the number of %ss says it", pool.Name)))
		}
		for node := range pool.Nodes {
			names[fmt.Sprintf("%s-%d", pool.Name, node)] = true
		}
	}
	for i, node := range s.Nodes {
		if !names[node.Name] {
			allErrs = append(allErrs, field.NotSupported(path.Child("nodes").Index(i).Child("name"), node.Name, slices.Sorted(maps.Keys(names))))
		}
	}
	return allErrs
}

func (s Spec) validateMachineSets(path *field.Path) field.ErrorList {
	var allErrs field.ErrorList
	seen := map[string]bool{}
	for i, set := range s.MachineSets {
		at := path.Index(i).Child("name")
		if bad := validation.IsDNS1123Label(set.Name); len(bad) > 0 {
			allErrs = append(allErrs, field.Invalid(at, set.Name, "must be up to 63 lower case letters, digits and dashes, such as worker-a"))
		}
		if seen[set.Name] {
			allErrs = append(allErrs, field.Duplicate(at, set.Name))
		}
		seen[set.Name] = true
	}
	return allErrs
}

// ValidateVersion says what is wrong with a version, and what would be right.
func ValidateVersion(path *field.Path, version string) field.ErrorList {
	if _, err := semver.Parse(version); err != nil {
		return field.ErrorList{field.Invalid(path, version, "must be a semantic version of three numbers, such as 4.20.6")}
	}
	return nil
}

// ValidateRelease says what is wrong with a release, and what would be right.
func ValidateRelease(path *field.Path, release updategraph.Release) field.ErrorList {
	allErrs := ValidateVersion(path.Child("version"), release.Version)
	for i, from := range release.From {
		allErrs = append(allErrs, ValidateVersion(path.Child("from").Index(i), from)...)
	}
	for i, risk := range release.Risks {
		allErrs = append(allErrs, validateRisk(path.Child("risks").Index(i), risk)...)
	}
	return allErrs
}

func validateRisk(path *field.Path, risk updategraph.Risk) field.ErrorList {
	var allErrs field.ErrorList
	if risk.Name == "" {
		allErrs = append(allErrs, field.Required(path.Child("name"), "name the risk in CamelCase, such as SlowDisks"))
	}
	answers := []string{updategraph.Yes, updategraph.No, updategraph.Unknown}
	if risk.Applies != "" && !slices.Contains(answers, risk.Applies) {
		allErrs = append(allErrs, field.NotSupported(path.Child("applies"), risk.Applies, answers))
	}
	return allErrs
}
