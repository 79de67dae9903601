// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"

// Row is a row of the table of reasons.
type Row struct {
	Reason, One, Many string
	Kind              updatev1beta1.RemedyType
	Text, Command     string
}

// Rows returns the table of reasons.
func Rows() []Row {
	var all []Row
	for _, r := range rows {
		all = append(all, Row{r.reason, r.one, r.many, r.kind, r.text, r.command})
	}
	return all
}

// MaxObjectBytes exports the budget for object names.
const MaxObjectBytes = maxObjectBytes
