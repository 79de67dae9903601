// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// OwnAlerts is how the names of the operator's own alerts begin. They say that
// an upgrade does not get on, so they must not be what holds it up.
const OwnAlerts = "ManagedUpgrade"

// query asks for the critical alerts that are firing, but for ours and those
// that are ignored, and for the watchdog, if there is one.
func (o Options) query() string {
	names := append(quoteAll(o.IgnoreAlerts), OwnAlerts+".*")
	query := `ALERTS{alertstate="firing",severity="critical",alertname!~` + anyOfRegexp(names)
	if len(o.IgnoreNamespaces) > 0 {
		query += `,namespace!~` + anyOfRegexp(quoteAll(o.IgnoreNamespaces))
	}
	query += `}`
	if o.Watchdog != "" {
		query += fmt.Sprintf(` or ALERTS{alertstate="firing",alertname=%s}`, strconv.Quote(o.Watchdog))
	}
	return query
}

// quoteAll are regular expressions that match each just what is given.
func quoteAll(values []string) []string {
	expressions := make([]string, 0, len(values)+1)
	for _, value := range values {
		expressions = append(expressions, regexp.QuoteMeta(value))
	}
	return expressions
}

// anyOfRegexp is the PromQL string of a regular expression that matches what one of
// those given does. PromQL writes strings as Go does, and anchors expressions.
func anyOfRegexp(expressions []string) string {
	return strconv.Quote(strings.Join(expressions, "|"))
}
