// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informersdk makes an update informer of two functions: one that finds insights about the
// update in progress, and one that finds what would be a problem if an update were started.
//
// Run does everything that a pod needs: it serves both functions over HTTPS, authenticates the
// Update Status Controller, reloads the certificate, and publishes the condition Online. NewHandler,
// TokenReview, Certificate, and Heartbeat are its parts, for programs that have a server of their
// own.
//
// The package does not decide what an insight is, and does not create the Service or the
// UpdateInformer. Package conformance checks an informer from the outside, whatever it is made of.
package informersdk
