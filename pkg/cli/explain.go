// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// maxError bounds a printed error, in bytes.
const maxError = 1024

// explain returns the error of a command as one line that names the next step.
func (p *Program) explain(err error) string {
	message := text.Sanitize(err.Error(), maxError)
	if hint := p.hint(err); hint != "" {
		return message + "; " + hint
	}
	return message
}

// hint returns what a user can do about an error; empty means that its message says so.
func (p *Program) hint(err error) string {
	var statusErr apierrors.APIStatus
	var address *url.Error
	var network net.Error
	switch {
	case exitCode(err) == ExitUsage, errors.Is(err, context.Canceled):
		return ""
	case isKubeconfigError(err):
		return "select a kubeconfig with --kubeconfig or KUBECONFIG, or create one with \"oc login\""
	case apierrors.IsUnauthorized(err):
		return "log in again, for example with \"oc login\""
	case isDeniedByGate(err):
		return "accept the risks, or ask an administrator for the ClusterRole update-bypasser, which --pre-checks=false needs"
	case apierrors.IsForbidden(err):
		return forbiddenHint(err)
	case meta.IsNoMatchError(err):
		return "the API server does not have this kind: check the cluster that --context selects, or install what provides the kind"
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("check the name with %q", p.client()+" get")
	case apierrors.IsConflict(err):
		return "the object has changed meanwhile: run the command again"
	case isCertificateError(err):
		return "check --certificate-authority, or log in again"
	case errors.As(err, &statusErr):
		return ""
	case errors.As(err, &address), errors.As(err, &network):
		return "check that the API server is running and can be reached, and the cluster that --context selects"
	default:
		return ""
	}
}

// acceptancePolicy is the admission policy that denies acceptances by users who may not accept risks.
const acceptancePolicy = "update-plan-acceptances"

// forbiddenHint names a ClusterRole that grants what the API server refused, if there is one.
func forbiddenHint(err error) string {
	role := ""
	switch {
	case isRead(err) && isOfFleets(err):
		return "ask an administrator for the ClusterRole fleet-viewer, and for the right to list managedclusters, placements, and placementdecisions"
	case isRead(err) && isOfUpgrades(err):
		role = "managed-upgrade-viewer"
	case isRead(err):
		role = "update-viewer"
	case strings.Contains(err.Error(), "managedclustersupgrades"):
		role = "fleet-editor"
	case isOfUpgrades(err):
		role = "managed-upgrade-editor"
	case strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+acceptancePolicy+"'"):
		role = "update-approver"
	case strings.Contains(err.Error(), "updateplans"):
		role = "update-planner"
	default:
		return "ask an administrator for this right, or select another user with --context"
	}
	return "ask an administrator for the ClusterRole " + role + ", or select another user with --context"
}

// client returns the client by which the user invoked the program.
func (p *Program) client() string {
	if client, _, isPlugin := strings.Cut(p.name, " "); isPlugin {
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

// isOfFleets reports whether an error is about an object of the hub of a fleet.
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
