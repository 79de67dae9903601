// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package updateinformer queries update informers: the services that UpdateInformers register.
//
// For each informer it finds the address of the Service and the authorities of its certificate,
// discovers what the informer has implemented, and requests insights while an update is pending.
// It reports the result in conditions of the UpdateInformer, and hands the answers to the
// controllers of UpdateStatus and UpdatePlans.
//
// An informer is not trusted: it is reached at the clusterIP of its Service only, its answers are
// bounded and cleaned, and one that does not answer delays no other.
//
// The package decides nothing about insights: package insight does.
package updateinformer
