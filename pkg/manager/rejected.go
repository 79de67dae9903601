// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsTooLarge reports whether the API server rejected a write because the request or the object is
// too large. Retrying such a write is pointless. etcd stores objects of up to 1.5 MiB; the API
// server reports etcd's rejection as an internal error, recognizable only by its message.
func IsTooLarge(err error) bool {
	if apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusInternalServerError {
		return false
	}
	message := status.Status().Message
	return strings.Contains(message, "request is too large") || strings.Contains(message, "message larger than max")
}

// IsRejected reports whether the API server rejected a request and would reject it again.
func IsRejected(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}
