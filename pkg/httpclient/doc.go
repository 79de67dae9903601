// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package httpclient sends requests to HTTP(S) servers beside the Kubernetes API, such as
// Alertmanager or the receiver of a webhook, and trusts them little: each request has a timeout,
// redirects are not followed, a response is read up to a bound, and what it says is sanitized
// before it is shown.
//
// It does not know what is requested, nor what a response means.
package httpclient
