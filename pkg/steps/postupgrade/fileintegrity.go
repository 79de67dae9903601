// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package postupgrade

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// fileIntegrities is the list kind of the File Integrity Operator's objects. That operator only
// reads objects in fileIntegrityNamespace.
var fileIntegrities = schema.GroupVersionKind{Group: "fileintegrity.openshift.io", Version: "v1alpha1", Kind: "FileIntegrityList"}

const fileIntegrityNamespace = "openshift-file-integrity"

const (
	// annotationReinit requests new databases from the File Integrity Operator; an empty value
	// requests them for all nodes. That operator removes the annotation.
	annotationReinit = "file-integrity.openshift.io/re-init"
	// annotationReinitFor holds the attempt that requested new databases last.
	annotationReinitFor = "upgrade.managed.openshift.io/re-init-for"
)

// A cluster without the File Integrity Operator lacks its namespace, so the Role is in a separate
// folder: deploy/file-integrity.
// +kubebuilder:rbac:groups=fileintegrity.openshift.io,resources=fileintegrities,namespace=openshift-file-integrity,verbs=list;patch

// fileIntegrityReinit requests new databases from the File Integrity Operator. Databases from
// before the upgrade contain the old system files, so every check of an updated node would fail.
// The same write records the attempt, so new databases are requested only once, even after a crash.
func fileIntegrityReinit(ctx context.Context, on Cluster, attempt string) (string, error) {
	found := metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(fileIntegrities)
	err := on.Live.List(ctx, &found, client.InNamespace(fileIntegrityNamespace))
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return "nothing to do, the File Integrity Operator is not installed", nil
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf("listing the FileIntegrity objects in namespace %s (deploy/file-integrity has the permissions): %w", fileIntegrityNamespace, err)
	case err != nil:
		return "", fmt.Errorf("listing the FileIntegrity objects in namespace %s: %w", fileIntegrityNamespace, err)
	}
	var requested []string
	var errs []error
	for i := range found.Items {
		one := &found.Items[i]
		switch {
		case one.DeletionTimestamp != nil:
			continue
		case one.Annotations[annotationReinitFor] != attempt:
			if err := reinit(ctx, on.Writer, one, attempt); err != nil {
				errs = append(errs, fmt.Errorf("annotating FileIntegrity %s: %w", one.Name, err))
			}
		}
		requested = append(requested, one.Name)
	}
	switch {
	case len(errs) > 0:
		return "", errors.Join(errs...)
	case len(requested) == 0:
		return "nothing to do, there is no FileIntegrity in namespace " + fileIntegrityNamespace, nil
	}
	return "requested new databases of " + text.JoinNames(requested), nil
}

// reinit requests new databases, unless the object has changed since it was read.
func reinit(ctx context.Context, w client.Writer, one *metav1.PartialObjectMetadata, attempt string) error {
	updated := one.DeepCopy()
	metav1.SetMetaDataAnnotation(&updated.ObjectMeta, annotationReinit, "")
	metav1.SetMetaDataAnnotation(&updated.ObjectMeta, annotationReinitFor, attempt)
	return w.Patch(ctx, updated, client.MergeFromWithOptions(one, client.MergeFromWithOptimisticLock{}))
}
