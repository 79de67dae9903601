// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package httpclient sends requests to HTTP(S) servers other than the Kubernetes API, such as
// Alertmanager or a webhook receiver, without trusting them: every request has a timeout, redirects
// are not followed, the size of responses is limited, and their content is sanitized before it is
// shown.
//
// It does not know the meaning of requests and responses.
package httpclient
