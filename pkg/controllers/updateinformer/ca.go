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
	// caKey is the key of the authorities in a Secret.
	caKey = "ca.crt"
	// maxCABytes bounds the authorities of an informer.
	maxCABytes = 64 << 10
)

// resolveCA returns the authorities that sign the certificate of an informer: from spec.clientConfig.caBundle, else
// from the Secret that an annotation names, else from the service CA. The Secret is read from the API server: no Secret
// is cached, and the controller may read only Secrets for which an informer brings a Role.
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

// serviceCA returns the authorities of the service CA; nil if there are none, or if they cannot be read.
func (r *Reconciler) serviceCA() []byte {
	ca, err := r.ServiceCA()
	if err != nil {
		return nil
	}
	return ca
}

// secretCA returns the authorities in the Secret that the annotation names; nil if it has none: the
// Secret of a serving certificate that the service CA signed has no key ca.crt.
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

// checkCA returns the authorities, or why they cannot be used.
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
