// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package updateinformer queries update informers, the services that UpdateInformers register.
//
// For each informer, it resolves the address of the Service and the CA of its certificate,
// discovers the handlers that the informer implements, and requests insights while an update is
// pending. It reports the result in conditions of the UpdateInformer, and passes the answers to the
// controllers of UpdateStatus and UpdatePlans.
//
// Informers are not trusted. They are only reached at the clusterIP of their Service, their answers
// are limited in size and sanitized, and an informer that hangs does not delay the others.
//
// Decisions about insights belong to package insight.
package updateinformer
