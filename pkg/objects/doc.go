// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects answers reads of Kubernetes objects from objects in memory, as the client of
// controller-runtime does: into typed objects, unstructured ones, and their metadata alone, with the
// selectors of lists. It also makes references to objects.
package objects
