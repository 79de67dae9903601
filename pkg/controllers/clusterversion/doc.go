// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterversion syncs the spec of OpenShift's ClusterVersion with the parameters of the
// ClusterVersion of managedupgrade.appuio.io: its template, merged with the latest overlay that has
// taken effect.
//
//   - The parameters are applied by server-side apply, so fields that the template does not set
//     stay with the clients that set them. A field that is removed from the template is removed.
//   - spec.desiredUpdate is never applied: upgrades set it.
//   - A change by another client is corrected, with an Event that names the field and the client.
//     The more often this happens, the longer the next correction waits.
//   - While an UpgradeConfig of upgrade.managed.openshift.io holds the upgrade lock, its upgrade
//     owns spec.channel.
//
// A pass makes no request if the generation of OpenShift's object shows that its spec is unchanged.
package clusterversion
