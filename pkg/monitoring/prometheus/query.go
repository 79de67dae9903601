// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"strconv"
)

// alertsQuery returns a query for critical alerts that are firing or pending, and for the watchdog
// if there is one. It aggregates labels that no check reads, so the size of the response does not
// grow with the number of affected pods.
func alertsQuery(watchdog string) string {
	query := `ALERTS{alertstate=~"firing|pending",severity="critical"}`
	if watchdog != "" { // PromQL quotes strings like Go
		query += fmt.Sprintf(` or ALERTS{alertstate="firing",alertname=%s}`, strconv.Quote(watchdog))
	}
	return "group by (alertname, namespace, alertstate) (" + query + ")"
}

// countQuery returns a query for the number of samples in the result of an expression. If there are
// no samples, its result is empty. The size of the response does not grow with the size of the
// result. The expression is on separate lines, because it may end with a comment.
func countQuery(expression string) string { return "count(\n" + expression + "\n)" }
