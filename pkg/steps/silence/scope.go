// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package silence

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
)

// Scope selects the alerts that are silenced.
type Scope struct {
	// Severities are the severities of the alerts that are silenced; none means no alert is silenced for its
	// severity.
	Severities []string
	// Namespaces are the namespaces of these alerts; an asterisk stands for any characters. Alerts without a namespace
	// are always silenced. No namespaces means all.
	Namespaces []string
	// Alerts are names of alerts that are silenced whatever their severity and namespace.
	Alerts []string
}

// String describes the alerts for people.
func (s Scope) String() string {
	var parts []string
	if len(s.Severities) > 0 {
		parts = append(parts, "alerts of severity "+strings.Join(s.Severities, ", "))
	}
	if len(s.Alerts) > 0 {
		parts = append(parts, fmt.Sprintf("%d alerts by name", len(s.Alerts)))
	}
	return strings.Join(parts, " and ")
}

// The labels that mark a silence as created by the operator. No alert has them, so every alert
// matches a matcher that requires another value; and silences can be queried by them.
const (
	labelUID     = "managed_upgrade_uid"
	labelAttempt = "managed_upgrade_attempt"
	labelWindow  = "managed_upgrade_window"
)

func ownerMatcher(label, value string) alertmanager.Matcher {
	return alertmanager.NotEqual(label, value)
}

// desired returns the matchers of the silences that the window consists of.
func (w Window) desired() [][]alertmanager.Matcher {
	ownerMatchers := []alertmanager.Matcher{
		alertmanager.NotMatches("alertname", clusterstate.OwnAlerts+".*"), // they report problems of the upgrade itself
		ownerMatcher(labelUID, w.attempt.UID),
		ownerMatcher(labelAttempt, w.attempt.ID()),
		ownerMatcher(labelWindow, w.name),
	}
	var all [][]alertmanager.Matcher
	if len(w.scope.Severities) > 0 {
		matchers := []alertmanager.Matcher{alertmanager.Matches("severity", anyOf(w.scope.Severities, regexp.QuoteMeta))}
		if len(w.scope.Namespaces) > 0 {
			matchers = append(matchers, alertmanager.Matches("namespace", anyOf(w.scope.Namespaces, pattern)+"|"))
		}
		all = append(all, append(matchers, ownerMatchers...))
	}
	if len(w.scope.Alerts) > 0 {
		all = append(all, append([]alertmanager.Matcher{alertmanager.Matches("alertname", anyOf(w.scope.Alerts, pattern))}, ownerMatchers...))
	}
	return all
}

// anyOf returns a regular expression that matches one of the texts.
func anyOf(texts []string, quote func(string) string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	slices.Sort(quoted)
	return strings.Join(slices.Compact(quoted), "|")
}

// pattern returns a regular expression for a text in which an asterisk stands for any characters.
func pattern(text string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, ".*")
}
