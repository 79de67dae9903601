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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

func TestIsTooLarge(t *testing.T) {
	t.Parallel()
	internal := func(message string) error {
		return fmt.Errorf("saving: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: message}})
	}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"request that the API server does not read": {fmt.Errorf("saving: %w", apierrors.NewRequestEntityTooLargeError("limit is 3145728")), true},
		"object that etcd does not store":           {internal("etcdserver: request is too large"), true},
		"object that is not sent to etcd":           {internal("rpc error: code = ResourceExhausted desc = trying to send message larger than max (2100000 vs. 2097152)"), true},
		"API server without etcd":                   {internal("etcdserver: no leader"), false},
		"conflict":                                  {apierrors.NewConflict(schema.GroupResource{}, "x", nil), false},
		"no answer":                                 {context.DeadlineExceeded, false},
		"success":                                   {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := manager.IsTooLarge(test.err); got != test.want {
				t.Errorf("IsTooLarge returns %t, want %t", got, test.want)
			}
		})
	}
}

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
