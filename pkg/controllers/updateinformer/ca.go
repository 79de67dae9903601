// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

const (
	// caKey is the key of the CA bundle in a Secret.
	caKey = "ca.crt"
	// maxCABytes limits the size of the CA bundle of an informer.
	maxCABytes = 64 << 10
)

// resolveCA returns the CA bundle for the certificate of an informer: from
// spec.clientConfig.caBundle, otherwise from the Secret that an annotation names, otherwise from
// the service CA. The Secret is read from the API server, because Secrets are not cached and the
// controller may only read the ones for which an informer brings a Role.
func (r *Reconciler) resolveCA(ctx context.Context, informer *updatev1beta1.UpdateInformer) ([]byte, *problem, error) {
	if bundle := informer.Spec.ClientConfig.CABundle; len(bundle) > 0 {
		return checkCA(bundle, "spec.clientConfig.caBundle")
	}
	if ref := informer.Annotations[updatev1beta1.InjectCAAnnotation]; ref != "" {
		ca, p, err := r.secretCA(ctx, informer, ref)
		if ca != nil || p != nil || err != nil {
			return ca, p, err
		}
	}
	ca := r.serviceCA()
	if len(ca) == 0 {
		return nil, newProblem(updatev1beta1.ConditionCABundleResolved, updatev1beta1.ReasonNoCACertificate,
			"no authority is known for the certificate of the informer: set spec.clientConfig.caBundle, "+
				"or the annotation %s to a Secret with the key %s in namespace %s",
			updatev1beta1.InjectCAAnnotation, caKey, informer.Spec.ClientConfig.Service.Namespace), nil
	}
	return checkCA(ca, "the file of the service CA")
}

// serviceCA returns the bundle of the service CA; nil if there is none or it cannot be read.
func (r *Reconciler) serviceCA() []byte {
	ca, err := r.ServiceCA()
	if err != nil {
		return nil
	}
	return ca
}

// secretCA returns the CA bundle in the Secret that the annotation names. It returns nil if the
// Secret has no key ca.crt, as is the case for serving certificates that the service CA signed.
func (r *Reconciler) secretCA(ctx context.Context, informer *updatev1beta1.UpdateInformer, ref string) ([]byte, *problem, error) {
	home := informer.Spec.ClientConfig.Service.Namespace
	namespace, name, found := strings.Cut(ref, "/")
	if !found || namespace != home || name == "" || strings.Contains(name, "/") {
		return nil, newProblem(updatev1beta1.ConditionCABundleResolved, updatev1beta1.ReasonSecretForbidden,
			"annotation %s must be %s/NAME: only a Secret in the namespace of the Service is read", updatev1beta1.InjectCAAnnotation, home), nil
	}
	var secret corev1.Secret
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, nil
	case apierrors.IsForbidden(err):
		return nil, newProblem(updatev1beta1.ConditionCABundleResolved, updatev1beta1.ReasonSecretForbidden,
			"Secret %s/%s may not be read; allow it: "+
				"oc -n %s create role %s-ca --verb=get --resource=secrets --resource-name=%s && "+
				"oc -n %s create rolebinding %s-ca --role=%s-ca --serviceaccount=%s:%s",
			namespace, name, namespace, name, name, namespace, name, name, r.ServiceAccount.Namespace, r.ServiceAccount.Name), nil
	case err != nil:
		return nil, nil, fmt.Errorf("getting Secret %s/%s: %w", namespace, name, err)
	case len(secret.Data[caKey]) == 0:
		return nil, nil, nil
	}
	return checkCA(secret.Data[caKey], fmt.Sprintf("%s of Secret %s/%s", caKey, namespace, name))
}

// checkCA returns the CA bundle, or the problem with it.
func checkCA(ca []byte, source string) ([]byte, *problem, error) {
	switch {
	case len(ca) > maxCABytes:
		return nil, newProblem(updatev1beta1.ConditionCABundleResolved, updatev1beta1.ReasonNoCACertificate,
			"%s is longer than %d bytes: keep only the authorities of the informer", source, maxCABytes), nil
	case !x509.NewCertPool().AppendCertsFromPEM(ca):
		return nil, newProblem(updatev1beta1.ConditionCABundleResolved, updatev1beta1.ReasonNoCACertificate,
			"%s contains no certificate in PEM: replace it by the authority that signs the certificate of the informer", source), nil
	}
	return ca, nil, nil
}
