// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// kubectl rejects a list whose items have no kind, and prints their names without it.
func TestOutput_items_of_a_list_have_their_kind(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"name": "updateplan.config.openshift.io/a\nupdateplan.config.openshift.io/b\n",
		"yaml": "- apiVersion: config.openshift.io/v1beta1\n  kind: UpdatePlan\n",
		"json": `"kind": "UpdatePlan",`,
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			o := OutputFlags(&cobra.Command{})
			o.Format = format
			var out strings.Builder
			err := o.Print(&out, &updatev1beta1.UpdatePlanList{Items: []updatev1beta1.UpdatePlan{
				{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}},
			}})
			if err != nil || !strings.Contains(out.String(), want) {
				t.Errorf("error %v, printed:\n%s\nwant:\n%s", err, out.String(), want)
			}
		})
	}
}
