// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// maxError limits the length of a printed error, in bytes.
const maxError = 1024

// Explain formats an error as one line that ends with the next step.
func (p *Session) Explain(err error) string {
	message := text.Sanitize(err.Error(), maxError)
	if hint := p.hint(err); hint != "" {
		return message + "; " + hint
	}
	return message
}

// hint suggests what the user can do about an error. It returns "" if the error already says so.
func (p *Session) hint(err error) string {
	var statusErr apierrors.APIStatus
	var address *url.Error
	var network net.Error
	var file *fs.PathError // also implements net.Error
	switch {
	case CodeOf(err) == ExitUsage, errors.Is(err, context.Canceled):
		return ""
	case isKubeconfigError(err):
		return "select a kubeconfig with --kubeconfig or KUBECONFIG, or create one with \"oc login\""
	case apierrors.IsUnauthorized(err):
		return "log in again, for example with \"oc login\""
	case IsDeniedByGate(err):
		return "accept the risks, or ask an administrator for the ClusterRole update-bypasser, which --pre-checks=false needs"
	case apierrors.IsForbidden(err):
		return forbiddenHint(err)
	case meta.IsNoMatchError(err):
		return "the API server does not have this kind: check the cluster that --context selects, or install what provides the kind"
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("check the name with %q", p.Client()+" get")
	case apierrors.IsConflict(err):
		return "the object has changed since it was read: run the command again"
	case isCertificateError(err):
		return "check --certificate-authority, or log in again"
	case errors.As(err, &statusErr), errors.As(err, &file):
		return ""
	case errors.As(err, &address), errors.As(err, &network):
		return "check that the API server is running and can be reached, and the cluster that --context selects"
	default:
		return ""
	}
}

// startGate is the admission policy that denies updates with unaccepted risks.
const startGate = "update-start-gate"

// IsDeniedByGate reports whether the start gate denied an update.
func IsDeniedByGate(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+startGate+"'")
}

// acceptancePolicy is the admission policy that denies acceptances by users without permission.
const acceptancePolicy = "update-plan-acceptances"

// forbiddenHint names a ClusterRole that grants the missing permission, if there is one.
func forbiddenHint(err error) string {
	message, role := err.Error(), ""
	isOf := func(resources ...string) bool {
		return slices.ContainsFunc(resources, func(resource string) bool { return strings.Contains(message, resource) })
	}
	switch read := isRead(err); {
	case read && isOfFleets(err):
		return "ask an administrator for the ClusterRole fleet-viewer, and for the right to list managedclusters, placements, and placementdecisions"
	case read && isOfUpgrades(err):
		role = "managed-upgrade-viewer"
	case read && isOf("updateinformers", "updateplans", "updatestatuses", `clusterversions.config.openshift.io "`, ControllerLease):
		role = "update-viewer"
	case isOf("ValidatingAdmissionPolicy '" + acceptancePolicy + "'"):
		role = "update-approver"
	case read:
	case isOf("managedclustersupgrades"):
		role = "fleet-editor"
	case isOfUpgrades(err):
		role = "managed-upgrade-editor"
	case isOf("updateplans", "updatestatuses"):
		role = "update-planner"
	}
	if role == "" {
		return "ask an administrator for this right, or select another user with --context"
	}
	return "ask an administrator for the ClusterRole " + role + ", or select another user with --context"
}

// Client returns the client that the user ran: oc or kubectl.
func (p *Session) Client() string {
	if client, _, isPlugin := strings.Cut(p.Name, " "); isPlugin {
		return client
	}
	return "oc"
}

func isKubeconfigError(err error) bool {
	_, is := errors.AsType[*kubeconfigError](err)
	return is
}

// isRead reports whether the API server refused a read.
func isRead(err error) bool {
	message := err.Error()
	return strings.Contains(message, " cannot get ") || strings.Contains(message, " cannot list ")
}

// isOfFleets reports whether an error is about a fleet object on the hub.
func isOfFleets(err error) bool {
	message := err.Error()
	return strings.Contains(message, "cluster.open-cluster-management.io") || strings.Contains(message, "clusterupgraderuns")
}

// isOfUpgrades reports whether an error is about an object that upgrades a cluster.
func isOfUpgrades(err error) bool {
	message := err.Error()
	return strings.Contains(message, "managedupgrade.appuio.io") || strings.Contains(message, "upgradeconfigs.upgrade.managed.openshift.io")
}

func isCertificateError(err error) bool {
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &authority) || errors.As(err, &hostname) || errors.As(err, &invalid)
}
