// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openshiftsim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineapi"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// InfrastructureName is the name of the cluster in its Infrastructure and MachineSets.
const InfrastructureName = "devcluster"

// OperatorNamespace is the namespace of the operator.
const OperatorNamespace = "managed-upgrade-operator"

// ClusterSpec describes a cluster. The zero value describes a small healthy cluster with an update to the
// next patch release.
type ClusterSpec struct {
	// Version is the installed version. It defaults to 4.20.5.
	Version string `json:"version,omitempty"`
	// Channel is the channel of the ClusterVersion. It defaults to the stable channel of the version.
	Channel string `json:"channel,omitempty"`
	// Releases lists the releases available in addition to the installed one. It defaults to the next
	// patch release in the cluster's channel.
	Releases []updategraph.Release `json:"releases,omitempty"`
	// Operators changes the behavior of default ClusterOperators or adds more.
	Operators []cvo.OperatorSpec `json:"operators,omitempty"`
	// Masters and Workers are the numbers of nodes in the pools master and worker. They default to 3.
	Masters int `json:"masters,omitempty"`
	Workers int `json:"workers,omitempty"`
	// Pools adds machine config pools or configures the pools master and worker.
	Pools []machineconfig.Pool `json:"pools,omitempty"`
	// MachineSets own the Machines of the workers. By default, there is one. An empty list creates
	// none.
	MachineSets []machineapi.MachineSet `json:"machineSets,omitempty"`
	// Nodes changes the behavior of individual nodes.
	Nodes []machineconfig.Node `json:"nodes,omitempty"`
	// Monitoring describes a real Prometheus and Alertmanager. If it is unset, the cluster has no
	// monitoring.
	Monitoring *alerting.Spec `json:"monitoring,omitempty"`
	// CVO selects the cluster version operator: simulated (the default) or real. The real one requires
	// Linux and root, and Speed does not affect it.
	CVO CVO `json:"cvo,omitempty"`
	// Speed is the speed of the simulated parts relative to real ones. It defaults to 60.
	Speed timescale.Speed `json:"speed,omitempty"`
}

// DefaultSpeed is the default of ClusterSpec.Speed.
const DefaultSpeed timescale.Speed = 60

// CVO is an implementation of the cluster version operator.
type CVO string

// Implementations of the cluster version operator.
const (
	Simulated CVO = "simulated"
	Real      CVO = "real"
)

const (
	defaultNodes = 3
	maxNodes     = 2000 // at which the API server needs 1.8 GiB
)

// WithDefaults returns the spec with defaults applied.
func (s ClusterSpec) WithDefaults() ClusterSpec {
	s.Version = cmp.Or(s.Version, "4.20.5")
	s.CVO = cmp.Or(s.CVO, Simulated)
	s.Speed = cmp.Or(s.Speed, DefaultSpeed)
	s.Masters = cmp.Or(s.Masters, defaultNodes)
	s.Workers = cmp.Or(s.Workers, defaultNodes)
	s.Pools = pools(s)
	if s.MachineSets == nil {
		s.MachineSets = []machineapi.MachineSet{{Name: InfrastructureName + "-worker-a"}}
	}
	version, err := semver.Parse(s.Version)
	if err != nil {
		return s // Validate returns the error
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

// pools returns the pools that every cluster has, followed by additional ones.
func pools(s ClusterSpec) []machineconfig.Pool {
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

// operators returns the default operators with the special ones merged in. Additional operators
// come first, because the machine config operator must be last.
func operators(special []cvo.OperatorSpec) []cvo.OperatorSpec {
	all := cvo.DefaultOperators()
	for _, operator := range special {
		index := slices.IndexFunc(all, func(known cvo.OperatorSpec) bool { return known.Name == operator.Name })
		if index >= 0 {
			all[index] = operator
		} else {
			all = slices.Insert(all, 0, operator)
		}
	}
	return all
}

// Validate returns an error for each invalid field and lists the valid values.
func (s ClusterSpec) Validate(path *field.Path) field.ErrorList {
	written := s
	s = s.WithDefaults()
	var allErrs field.ErrorList
	if s.Speed < 0 {
		allErrs = append(allErrs, field.Invalid(path.Child("speed"), s.Speed, "must be greater than 0: at 60, an hour takes a minute"))
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
	allErrs = append(allErrs, s.validatePools(path.Child("pools"), written.Pools)...)
	allErrs = append(allErrs, s.validateMachineSets(path.Child("machineSets"))...)
	if s.Monitoring != nil {
		allErrs = append(allErrs, s.Monitoring.Validate(path.Child("monitoring"))...)
	}
	for i, operator := range written.Operators {
		at := path.Child("operators").Index(i)
		if operator.Name == "" {
			allErrs = append(allErrs, field.Required(at.Child("name"), "must be the name of a ClusterOperator, such as network"))
		}
		allErrs = append(allErrs, operator.Takes.Validate(at.Child("takes"))...)
	}
	return allErrs
}

func (s ClusterSpec) validateNodes(path *field.Path) field.ErrorList {
	var allErrs field.ErrorList
	if s.Masters < 0 {
		allErrs = append(allErrs, field.Invalid(path.Child("masters"), s.Masters, "must be at least 1"))
	}
	if s.Workers < 0 {
		allErrs = append(allErrs, field.Invalid(path.Child("workers"), s.Workers, "must be at least 1"))
	}
	names, all := map[string]bool{}, 0
	for _, pool := range s.Pools {
		if all += max(pool.Nodes, 0); all > maxNodes {
			return append(allErrs, field.Invalid(path.Child("workers"), s.Workers, fmt.Sprintf("all pools together must have at most %d nodes", maxNodes)))
		}
		for node := range pool.Nodes {
			names[fmt.Sprintf("%s-%d", pool.Name, node)] = true
		}
	}
	for i, node := range s.Nodes {
		allErrs = append(allErrs, node.RebootTakes.Validate(path.Child("nodes").Index(i).Child("rebootTakes"))...)
		if !names[node.Name] {
			allErrs = append(allErrs, field.NotSupported(path.Child("nodes").Index(i).Child("name"), node.Name, slices.Sorted(maps.Keys(names))))
		}
	}
	return allErrs
}

// validatePools validates the pools in the original spec.
func (s ClusterSpec) validatePools(path *field.Path, written []machineconfig.Pool) field.ErrorList {
	var allErrs field.ErrorList
	seen := map[string]bool{}
	for i, pool := range written {
		at := path.Index(i)
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
		case pool.Nodes == 0:
		case pool.Name == machineconfig.Master && pool.Nodes != s.Masters, pool.Name == machineconfig.Worker && pool.Nodes != s.Workers:
			allErrs = append(allErrs, field.Invalid(at.Child("nodes"), pool.Nodes, fmt.Sprintf("must be left out: the field %ss sets it", pool.Name)))
		}
	}
	return allErrs
}

func (s ClusterSpec) validateMachineSets(path *field.Path) field.ErrorList {
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
		allErrs = append(allErrs, set.InstallTakes.Validate(path.Index(i).Child("installTakes"))...)
	}
	return allErrs
}

// ValidateVersion returns an error if a version is invalid.
func ValidateVersion(path *field.Path, version string) field.ErrorList {
	if _, err := semver.Parse(version); err != nil {
		return field.ErrorList{field.Invalid(path, version, "must be a semantic version, such as 4.20.6")}
	}
	return nil
}

// ValidateRelease returns an error for each invalid field of a release.
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
		allErrs = append(allErrs, field.Required(path.Child("name"), "must be a CamelCase name, such as SlowDisks"))
	}
	answers := []string{updategraph.Yes, updategraph.No, updategraph.Unknown}
	if risk.Applies != "" && !slices.Contains(answers, risk.Applies) {
		allErrs = append(allErrs, field.NotSupported(path.Child("applies"), risk.Applies, answers))
	}
	return allErrs
}
