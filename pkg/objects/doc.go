// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects serves reads of Kubernetes objects from memory like controller-runtime's client:
// as typed objects, as unstructured objects, or as metadata only, including list selectors. It also
// creates object references.
package objects
