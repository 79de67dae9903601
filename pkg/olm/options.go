// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Environment variables of the program. The first three are defined by the proposal for
// ManagedClustersUpgrade.
const (
	// EnvTimeout is the timeout for the upgrades in seconds.
	EnvTimeout = "WAITTIME"
	// EnvInclude lists the operators to upgrade in the form name,namespace, separated by spaces. It
	// defaults to all operators.
	EnvInclude = "INCLUDELIST"
	// EnvExclude lists operators that must not be upgraded, in the same format.
	EnvExclude = "EXCLUDELIST"
	// EnvReport is the Job that receives the report, in the form name,namespace. If it is empty, there
	// is no report.
	EnvReport = "REPORT"
)

// maxTimeout is the maximum timeout, which equals the maximum in a ManagedClustersUpgrade.
const maxTimeout = 7 * 24 * time.Hour

// Options select the operators to upgrade by the names of their Subscriptions.
type Options struct {
	// Timeout limits how long the upgrades may take.
	Timeout time.Duration
	// Include lists the Subscriptions to upgrade. If it is empty, all Subscriptions are upgraded.
	Include []types.NamespacedName
	// Exclude lists the Subscriptions that must not be upgraded, even if Include lists them.
	Exclude []types.NamespacedName
	// Report is the Job that receives the report. If it is empty, there is no report.
	Report types.NamespacedName
}

// ParseOptions returns the options from environment variables. The error lists all invalid
// variables.
func ParseOptions(getenv func(string) string) (Options, error) {
	timeout, err := parseTimeout(getenv(EnvTimeout))
	include, err2 := parseNames(EnvInclude, getenv(EnvInclude))
	exclude, err3 := parseNames(EnvExclude, getenv(EnvExclude))
	job, err4 := parseNames(EnvReport, getenv(EnvReport))
	if len(job) > 1 {
		err4 = fmt.Errorf("%s: %q names several Jobs", EnvReport, getenv(EnvReport))
	}
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return Options{}, err
	}
	options := Options{Timeout: timeout, Include: include, Exclude: exclude}
	if len(job) > 0 {
		options.Report = job[0]
	}
	return options, nil
}

func parseTimeout(value string) (time.Duration, error) {
	seconds, err := strconv.ParseInt(value, 10, 64)
	if maximum := int64(maxTimeout / time.Second); err != nil || seconds < 1 || seconds > maximum {
		return 0, fmt.Errorf("%s: is %q, must be a number of seconds from 1 to %d", EnvTimeout, value, maximum)
	}
	return time.Duration(seconds) * time.Second, nil
}

func parseNames(variable, value string) ([]types.NamespacedName, error) {
	var names []types.NamespacedName
	for item := range strings.FieldsSeq(value) {
		name, namespace, found := strings.Cut(item, ",")
		if !found || name == "" || namespace == "" || strings.Contains(namespace, ",") {
			return nil, fmt.Errorf("%s: %q must be a name and a namespace, for example gitops,openshift-operators", variable, item)
		}
		names = append(names, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return names, nil
}

// selects reports whether a Subscription is selected for an upgrade.
func (o *Options) selects(name types.NamespacedName) bool {
	return (len(o.Include) == 0 || slices.Contains(o.Include, name)) && !o.excludes(name)
}

// excludes reports whether a Subscription is excluded.
func (o *Options) excludes(name types.NamespacedName) bool { return slices.Contains(o.Exclude, name) }
