// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informersdk builds an update informer from two functions: one finds insights about the
// update in progress, and the other finds problems that an update would encounter if it were
// started.
//
// Run does everything that a pod needs: it serves both functions over HTTPS, authenticates the
// Update Status Controller, reloads the certificate, and publishes the Online condition.
// NewHandler, TokenReview, Certificate, and Heartbeat are its building blocks, for programs with
// their own server.
//
// The package does not decide what an insight is, and does not create the Service or the
// UpdateInformer. Package conformance checks an informer from the outside, however it is
// implemented.
package informersdk
