// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoint talks to an HTTP(S) server beside the Kubernetes API, such as
// Alertmanager or the receiver of a webhook, and believes it little: each
// request ends in time, redirects are not followed, an answer is read up to a
// bound, and what it says is made fit to be shown to people.
//
// It does not know what is asked, nor what an answer means.
package httpclient
