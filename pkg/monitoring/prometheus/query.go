// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"strconv"
)

// alertsQuery returns the query for the critical alerts that are firing or pending, and for the
// watchdog if there is one. The labels that no check reads are aggregated away, so the size of the
// response does not grow with the number of alerting pods.
func alertsQuery(watchdog string) string {
	query := `ALERTS{alertstate=~"firing|pending",severity="critical"}`
	if watchdog != "" { // PromQL quotes strings as Go does
		query += fmt.Sprintf(` or ALERTS{alertstate="firing",alertname=%s}`, strconv.Quote(watchdog))
	}
	return "group by (alertname, namespace, alertstate) (" + query + ")"
}

// countQuery returns the query for the number of samples in the result of an expression, which is empty if there are
// none: the size of the response does not grow with the size of the result. The expression has lines of its own, as it
// may end with a comment.
func countQuery(expression string) string { return "count(\n" + expression + "\n)" }
