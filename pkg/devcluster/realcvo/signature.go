// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realcvo

import (
	"bytes"
	"crypto"
	"encoding/json"
	"fmt"

	"golang.org/x/crypto/openpgp"        //nolint:staticcheck // deprecated, but used by the cluster version operator
	"golang.org/x/crypto/openpgp/armor"  //nolint:staticcheck // likewise
	"golang.org/x/crypto/openpgp/packet" //nolint:staticcheck // likewise

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// Key signs releases. Each cluster has its own key, and no other cluster trusts it.
type Key struct{ entity *openpgp.Entity }

// NewKey generates a key.
func NewKey() (*Key, error) {
	entity, err := openpgp.NewEntity("Dev Cluster", "for tests only", "devcluster@example.com", &packet.Config{DefaultHash: crypto.SHA256})
	if err != nil {
		return nil, fmt.Errorf("making a key that signs releases: %w", err)
	}
	return &Key{entity: entity}, nil
}

// Public returns the public key in ASCII armor.
func (k *Key) Public() (string, error) {
	var text bytes.Buffer
	writer, err := armor.Encode(&text, openpgp.PublicKeyType, nil)
	if err == nil {
		err = k.entity.Serialize(writer)
	}
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		return "", fmt.Errorf("writing the public key: %w", err)
	}
	return text.String(), nil
}

// Sign returns a signature of the release in the format that
// https://github.com/containers/image/blob/main/docs/containers-signature.5.md describes.
func (k *Key) Sign(release updategraph.Release) ([]byte, error) {
	content, err := json.Marshal(map[string]any{
		"critical": map[string]any{
			"type":     "atomic container signature",
			"image":    map[string]any{"docker-manifest-digest": release.Digest()},
			"identity": map[string]any{"docker-reference": release.Image()},
		},
		"optional": map[string]any{"creator": "devcluster"},
	})
	if err != nil {
		return nil, err
	}
	var signed bytes.Buffer
	writer, err := openpgp.Sign(&signed, k.entity, nil, nil)
	if err == nil {
		_, err = writer.Write(content)
	}
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("signing release %s: %w", release.Version, err)
	}
	return signed.Bytes(), nil
}
