// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package text_test

import (
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

func TestValues(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 13, 0, 0, 500, time.FixedZone("CET", 3600))
	for _, tc := range []struct{ got, want string }{
		{text.FormatTime(at), "2026-03-01T12:00:00Z"},
		{text.Plural(0, "node", "nodes"), "0 nodes"},
		{text.Plural(1, "node", "nodes"), "1 node"},
		{text.Plural(12, "node", "nodes"), "12 nodes"},
		{text.Hash("abc", 4), "ba7816bf"},
		{text.Hash("abc", 99), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}
