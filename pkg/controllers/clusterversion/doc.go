// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterversion keeps the spec of the ClusterVersion of OpenShift in sync with the
// parameters of the ClusterVersion of managedupgrade.appuio.io: its template, changed by the
// overlay with the latest time that has passed.
//
//   - The parameters are applied by server-side apply, so that fields that the template does not
//     set belong to the clients that set them. A field that is removed from the template is
//     removed.
//   - spec.desiredUpdate is never applied: upgrades set it.
//   - A change by another client is corrected, with an Event that names the field and the client.
//     The more often that happens, the longer the next correction waits.
//   - While an UpgradeConfig of upgrade.managed.openshift.io holds the upgrade lock, spec.channel
//     belongs to its upgrade.
//
// The generation of OpenShift's object shows whether its spec has changed. A pass in which it has
// not makes no request.
package clusterversion
