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

// Scope selects the alerts to silence.
type Scope struct {
	// Severities lists the severities of the alerts to silence. If it is empty, no alerts are
	// silenced by severity.
	Severities []string
	// Namespaces lists the namespaces of these alerts; an asterisk matches any characters. Alerts
	// without a namespace are always silenced. Defaults to all namespaces.
	Namespaces []string
	// Alerts lists the names of alerts to silence regardless of their severity and namespace.
	Alerts []string
}

// String describes the alerts for use in messages.
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

// Labels that mark a silence as the operator's. Alerts do not have them, so each matcher requires
// another value and matches every alert. Silences can be queried by these matchers.
const (
	labelUID     = "managed_upgrade_uid"
	labelAttempt = "managed_upgrade_attempt"
	labelWindow  = "managed_upgrade_window"
)

func ownerMatcher(label, value string) alertmanager.Matcher {
	return alertmanager.NotEqual(label, value)
}

// desired returns the matchers of the window's silences.
func (w Window) desired() [][]alertmanager.Matcher {
	ownerMatchers := []alertmanager.Matcher{
		alertmanager.NotMatches("alertname", clusterstate.OwnAlerts+".*"), // these alerts report problems of the upgrade itself
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

// anyOf returns a regular expression that matches any of the texts.
func anyOf(texts []string, quote func(string) string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	slices.Sort(quoted)
	return strings.Join(slices.Compact(quoted), "|")
}

// pattern returns a regular expression for a text with asterisks. An asterisk matches any
// characters.
func pattern(text string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, ".*")
}
