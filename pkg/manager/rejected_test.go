// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

func TestIsRejected(t *testing.T) {
	t.Parallel()
	for code, want := range map[int32]bool{
		http.StatusBadRequest: true, http.StatusForbidden: true, http.StatusNotFound: true, http.StatusUnprocessableEntity: true,
		http.StatusRequestTimeout: false, http.StatusConflict: false, http.StatusTooManyRequests: false,
		http.StatusInternalServerError: false, http.StatusServiceUnavailable: false, http.StatusGatewayTimeout: false,
	} {
		err := fmt.Errorf("deleting: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: code}})
		if got := manager.IsRejected(err); got != want {
			t.Errorf("%d: got %t", code, got)
		}
	}
	if manager.IsRejected(context.DeadlineExceeded) || manager.IsRejected(nil) {
		t.Error("a missing answer counts as a refusal")
	}
}
