// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	maxSkew     = hooksv1alpha.MaxAheadSeconds * time.Second
	maxAge      = time.Hour
	maxDuration = 7 * 24 * time.Hour
)

func (r *run) checkInsights(request string, insights []hooksv1alpha.Insight) {
	if len(insights) > hooksv1alpha.MaxInsights {
		r.report(Error, CheckSizes, request, fmt.Sprintf("there are %d insights", len(insights)), fmt.Sprintf("Report at most %d insights: one for several objects, or the most severe ones", hooksv1alpha.MaxInsights))
		insights = insights[:hooksv1alpha.MaxInsights]
	} else {
		r.checkCounts(request, insights)
	}
	seen := map[string]bool{}
	for i := range insights {
		in := &insights[i]
		c := insightCheck{run: r, request: request, name: fmt.Sprintf("insight %d (uid %s)", i, text.Excerpt(in.UID))}
		switch {
		case in.UID == "":
			c.fail(CheckUIDs, "has no uid", "Set the uid to what is wrong and with which object")
		case len(in.UID) > hooksv1alpha.MaxUIDBytes:
			c.fail(CheckUIDs, fmt.Sprintf("has a uid of %d bytes", len(in.UID)), fmt.Sprintf("Use at most %d bytes", hooksv1alpha.MaxUIDBytes))
		case timeInText.MatchString(in.UID):
			c.fail(CheckUIDs, "has a time in its uid", "Derive the uid from what is wrong and with which object, never from a time, a count, or an index")
		case seen[in.UID]:
			c.fail(CheckUIDs, "has the uid of another insight", "Use one uid for each insight")
		}
		seen[in.UID] = true
		c.checkScope(in.Scope)
		c.checkImpact(in.Impact)
		c.checkTimes(in)
		c.checkLink(in.Remediation.Reference)
	}
}

// checkCounts reports insights that the controller does not publish.
func (r *run) checkCounts(request string, insights []hooksv1alpha.Insight) {
	counts := map[string]int{}
	for i := range insights {
		section := fmt.Sprint(insights[i].Scope.Type, insights[i].Scope.WorkerPool)
		counts[section]++
		most, about := hooksv1alpha.MaxPoolInsights, "one pool"
		if insights[i].Scope.Type == updatev1beta1.ScopeControlPlane {
			most, about = hooksv1alpha.MaxControlPlaneInsights, "the control plane"
		}
		if counts[section] == most+1 {
			r.report(Warning, CheckSizes, request, fmt.Sprintf("there are more than %d insights about %s", most, about), "Report one insight for several objects: only the most severe ones are shown")
		}
	}
}

// timeInText matches a date, or a Unix time of the current era in seconds or fractions of a second.
var timeInText = regexp.MustCompile(`\b20\d\d-[01]\d-[0-3]\d|(?:^|\D)(1[6-9]\d{8})(?:\d{3}|\d{6}|\d{9})?(?:\D|$)`)

// insightCheck checks one insight.
type insightCheck struct {
	*run

	request, name string
}

func (c *insightCheck) fail(check, problem, change string) {
	c.report(Error, check, c.request, c.name+" "+problem, change)
}

func (c *insightCheck) warn(check, problem, change string) {
	c.report(Warning, check, c.request, c.name+" "+problem, change)
}

func (c *insightCheck) checkScope(scope updatev1beta1.InsightScope) {
	switch scope.Type {
	case updatev1beta1.ScopeControlPlane:
		if len(scope.WorkerPool) > 0 {
			c.warn(CheckScopes, "has a workerPool and the scope type ControlPlane", "Use the scope type WorkerPool, or remove workerPool")
		}
	case updatev1beta1.ScopeWorkerPool:
		if len(scope.WorkerPool) == 0 {
			c.fail(CheckScopes, "has the scope type WorkerPool and no workerPool", "Name the MachineConfigPool, MachineSet, or other pool in scope.workerPool")
		}
	default:
		c.fail(CheckScopes, fmt.Sprintf("has the scope type %q", text.Excerpt(string(scope.Type))), "Use ControlPlane or WorkerPool")
	}
	c.checkReferences("scope.workerPool", scope.WorkerPool)
	c.checkReferences("scope.resources", scope.Resources)
}

func (c *insightCheck) checkReferences(field string, refs []updatev1beta1.ResourceReference) {
	if len(refs) > hooksv1alpha.MaxReferences {
		c.fail(CheckSizes, fmt.Sprintf("has %d objects in %s", len(refs), field), fmt.Sprintf("Name at most %d objects, or report several insights", hooksv1alpha.MaxReferences))
	}
	if slices.ContainsFunc(refs, func(ref updatev1beta1.ResourceReference) bool { return ref.Kind == "" || ref.Name == "" }) {
		c.fail(CheckScopes, "has an object without a kind or a name in "+field, "Set the kind and the name of each object")
	}
}

func (c *insightCheck) checkImpact(impact updatev1beta1.InsightImpact) {
	if !impact.Level.Known() {
		c.fail(CheckLevels, fmt.Sprintf("has the level %q", text.Excerpt(string(impact.Level))), "Use status, info, warning, error, or critical")
	}
	if impact.Summary == "" {
		c.fail(CheckTexts, "has no summary", "Set impact.summary to one line for people")
	}
	for _, field := range []struct {
		name, value string
		maxBytes    int
		lines       bool
	}{
		{"impact.summary", impact.Summary, hooksv1alpha.MaxSummaryBytes, false},
		{"impact.description", impact.Description, hooksv1alpha.MaxDescriptionBytes, true},
		{"impact.type", impact.Type, hooksv1alpha.MaxWordBytes, false},
		{"impact.reason", impact.Reason, hooksv1alpha.MaxWordBytes, false},
	} {
		if len(field.value) > field.maxBytes {
			c.warn(CheckSizes, fmt.Sprintf("has %d bytes in %s", len(field.value), field.name), fmt.Sprintf("Use at most %d bytes: the rest is cut off", field.maxBytes))
		}
		if !printable(field.value, field.lines) {
			c.warn(CheckTexts, "has control or invisible characters in "+field.name, "Use printable characters: others are removed")
		}
	}
}

// printable reports whether a string contains only characters that are shown to users.
func printable(s string, lines bool) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, c := range s {
		if layout := c == '\n' || c == '\t'; !unicode.IsPrint(c) && (!lines || !layout) {
			return false
		}
	}
	return true
}

func (c *insightCheck) checkTimes(in *hooksv1alpha.Insight) {
	now := c.clock.Now()
	at := in.AcquisitionTime.Time
	switch {
	case at.IsZero():
		c.fail(CheckTimes, "has no acquisitionTime", "Set it to when the data was acquired")
	case at.After(now.Add(maxSkew)):
		c.fail(CheckTimes, "was acquired in the future", "Set acquisitionTime to when the data was acquired, and synchronize the clock")
	case at.Before(now.Add(-maxAge)):
		c.warn(CheckTimes, "was acquired more than an hour ago", "Acquire data more often, or answer Wait while that takes longer")
	}
	finish := in.Remediation.EstimatedFinish
	if finish == "" {
		return
	}
	at, valid := in.Remediation.Finish(at)
	if !valid {
		c.fail(CheckTimes, fmt.Sprintf("has the estimatedFinish %q", text.Excerpt(finish)), "Use a date and time as 2026-11-22T17:00:00Z, or a duration from acquisitionTime on as 15m")
		return
	}
	if in.AcquisitionTime.IsZero() || at.Before(in.AcquisitionTime.Time) || at.After(in.AcquisitionTime.Add(maxDuration)) {
		c.warn(CheckTimes, fmt.Sprintf("has the estimatedFinish %q", text.Excerpt(finish)), "Use a time after acquisitionTime and within 7 days")
	}
}

func (c *insightCheck) checkLink(reference string) {
	if reference == "" {
		return
	}
	if u, err := url.Parse(reference); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || len(reference) > 1024 || !printable(reference, false) {
		c.warn(CheckTexts, fmt.Sprintf("has the reference %s", text.Excerpt(reference)), "Use an https URL of at most 1024 bytes without a password: others are not shown")
	}
}
