// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realcvo

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"golang.org/x/crypto/openpgp" //nolint:staticcheck // deprecated, and what the cluster version operator verifies with

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

func TestSignature_is_valid_and_names_the_digest(t *testing.T) {
	t.Parallel()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	release := updategraph.Release{Version: "4.20.6"}
	signature, err := key.Sign(release)
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.Public()
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := openpgp.ReadArmoredKeyRing(strings.NewReader(public))
	if err != nil {
		t.Fatal(err)
	}
	message, err := openpgp.ReadMessage(bytes.NewReader(signature), keyring, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(message.UnverifiedBody)
	if err != nil {
		t.Fatal(err)
	}
	if message.SignatureError != nil || message.SignedBy == nil {
		t.Errorf("the signature does not verify: %v", message.SignatureError)
	}
	if !strings.Contains(string(content), release.Digest()) {
		t.Errorf("%s does not name %s", content, release.Digest())
	}
}
