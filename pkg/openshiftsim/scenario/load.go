// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config/strict"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
)

// Names returns the names of the scenarios in a folder.
func Names(files fs.FS) ([]string, error) {
	found, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i] = strings.TrimSuffix(found[i], ".yaml")
	}
	return found, nil
}

// Load reads a scenario by name from a folder, or else by path. The functions may change it before
// defaults are applied.
func Load(files fs.FS, nameOrPath string, adjust ...func(*Scenario) error) (*Scenario, error) {
	content, err := fs.ReadFile(files, nameOrPath+".yaml")
	if err == nil {
		return Decode(nameOrPath+".yaml", content, adjust...)
	}
	content, fileErr := os.ReadFile(nameOrPath) //nolint:gosec // the user names the file
	if fileErr != nil {
		names, err := Names(files)
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s: neither a scenario nor a file; scenarios: %s", nameOrPath, strings.Join(names, ", "))
	}
	return Decode(nameOrPath, content, adjust...)
}

// Decode decodes a scenario, applies defaults, and validates it. The error has one line for each
// unknown field and each invalid value, prefixed with the file name. A syntax error or a value of
// the wrong type is reported alone.
func Decode(file string, content []byte, adjust ...func(*Scenario) error) (*Scenario, error) {
	s := &Scenario{}
	allErrs, err := strict.Unmarshal(content, s)
	if err != nil {
		return nil, inFile(file, err)
	}
	for _, change := range adjust {
		if err := change(s); err != nil {
			return nil, err
		}
	}
	allErrs = append(allErrs, s.Cluster.Validate(field.NewPath("cluster"))...) // without defaults, which would change indexes
	s.setDefaults()
	allErrs = append(allErrs, s.validate(strings.TrimSuffix(path.Base(filepath.ToSlash(file)), path.Ext(file)))...)
	if len(allErrs) == 0 {
		return s, nil
	}
	return nil, inFile(file, allErrs.ToAggregate().Errors()...)
}

// inFile prefixes each error with the name of the file.
func inFile(file string, errs ...error) error {
	lines := make([]error, len(errs))
	for i, err := range errs {
		lines[i] = fmt.Errorf("%s: %w", file, err)
	}
	return errors.Join(lines...)
}

func (s *Scenario) setDefaults() {
	s.Cluster = s.Cluster.WithDefaults()
	if s.UpgradeConfigs == nil && len(s.Maintenance) == 0 {
		s.UpgradeConfigs = []UpgradeConfig{{}}
	}
	for _, object := range s.Maintenance {
		setMaintenanceDefaults(object)
	}
	for i := range s.UpgradeConfigs {
		u := &s.UpgradeConfigs[i]
		u.Name = cmp.Or(u.Name, defaultName)
		u.Type = cmp.Or(u.Type, defaultType)
		u.Version = cmp.Or(u.Version, highest(s.Cluster))
		u.Channel = cmp.Or(u.Channel, s.Cluster.Channel)
	}
	for i := range s.Rules {
		s.Rules[i].Times = cmp.Or(s.Rules[i].Times, 1)
	}
	e := &s.Expect
	e.Within = cmp.Or(e.Within, 3*minute)
	if len(e.UpgradeConfigs) == 0 {
		for _, u := range s.UpgradeConfigs {
			e.UpgradeConfigs = append(e.UpgradeConfigs, ExpectedUpgrade{Name: u.Name})
		}
	}
	for i := range e.UpgradeConfigs {
		u := &e.UpgradeConfigs[i]
		u.Name = cmp.Or(u.Name, defaultName)
		u.Phase = cmp.Or(u.Phase, phaseUpgraded)
	}
	for i := range e.UpgradeJobs {
		e.UpgradeJobs[i].Phase = cmp.Or(e.UpgradeJobs[i].Phase, phaseUpgraded)
	}
	if e.ClusterVersion != nil {
		e.ClusterVersion.State = cmp.Or(e.ClusterVersion.State, completed)
	}
}

const minute = timescale.Duration(60e9)

func highest(cluster openshiftsim.ClusterSpec) string {
	versions := []string{cluster.Version}
	for _, release := range cluster.Releases {
		versions = append(versions, release.Version)
	}
	slices.SortFunc(versions, func(a, b string) int {
		left, err := semver.Parse(a)
		right, otherErr := semver.Parse(b)
		if err != nil || otherErr != nil {
			return cmp.Compare(a, b) // validation returns the error
		}
		return left.Compare(right)
	})
	return versions[len(versions)-1]
}
