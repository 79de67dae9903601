// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// uuidBytes is the length of a UUID, the first half of a SHA-256 hash.
const uuidBytes = sha256.Size / 2

// UUID identifies an insight in the cluster. It hashes the informer, the scope type, the pools and resources
// in any order, and the uid. Each part is prefixed with its length, so different lists of parts never produce
// the same input. The API group of an object counts; its version does not.
func UUID(informer string, scope updatev1beta1.InsightScope, uid string) string {
	hash := sha256.New()
	write := func(part string) {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	writeRefs := func(refs []updatev1beta1.ResourceReference) {
		sorted := sortedRefs(refs)
		var count [8]byte
		binary.BigEndian.PutUint64(count[:], uint64(len(sorted)))
		hash.Write(count[:])
		for _, ref := range sorted {
			write(Group(ref.APIVersion))
			write(ref.Kind)
			write(ref.Namespace)
			write(ref.Name)
		}
	}
	write(informer)
	write(string(scope.Type))
	writeRefs(scope.WorkerPool)
	writeRefs(scope.Resources)
	write(uid)
	return hex.EncodeToString(hash.Sum(nil)[:uuidBytes])
}

// Group returns the API group of an apiVersion, or "" for the core group.
func Group(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}

// sortedRefs returns the references sorted and without duplicates.
func sortedRefs(refs []updatev1beta1.ResourceReference) []updatev1beta1.ResourceReference {
	compare := func(a, b updatev1beta1.ResourceReference) int {
		return cmp.Or(
			strings.Compare(Group(a.APIVersion), Group(b.APIVersion)), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
		)
	}
	sorted := slices.SortedStableFunc(slices.Values(refs), compare)
	return slices.CompactFunc(sorted, func(a, b updatev1beta1.ResourceReference) bool { return compare(a, b) == 0 })
}
