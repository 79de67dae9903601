// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realcvo

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
)

// Resync makes the cluster version operator check immediately whether the cluster is upgradeable
// and report the result. By itself it does so only every two to four minutes, and until then it
// reports an update in progress.
func Resync(ctx context.Context, c client.Client) error {
	acks := configMap("openshift-config", "admin-acks", nil)
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: cvo.Name}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"devcluster.openshift.io/resync":%q}}}`, time.Now().Format(time.RFC3339Nano))
	for _, object := range []client.Object{acks, version} { // the first triggers the check, the second the report
		if err := c.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			return fmt.Errorf("requesting a resync of the cluster version operator: %w", err)
		}
	}
	return nil
}
