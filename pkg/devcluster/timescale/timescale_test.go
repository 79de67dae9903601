// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package timescale_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/timescale"
)

func TestSpeedDividesDurationsButNever(t *testing.T) {
	t.Parallel()
	if got := timescale.Speed(60).Scale(timescale.Duration(time.Hour)); got != time.Minute {
		t.Errorf("an hour takes %s at speed 60", got)
	}
	if got := timescale.Speed(60).Scale(timescale.Never); got < 24*365*time.Hour {
		t.Errorf("never takes %s at speed 60", got)
	}
}

func TestDurationsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`"1h30m0s"`, `"never"`, `"0s"`} {
		var d timescale.Duration
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		if written, err := json.Marshal(d); err != nil || string(written) != text {
			t.Errorf("%s is written as %s (%v)", text, written, err)
		}
	}
	for _, text := range []string{`"5"`, `5`, `"-5s"`, `"sometimes"`} {
		var d timescale.Duration
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s was read as %s", text, d)
		}
	}
}

func TestTheSoonerOfTwoDelays(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ a, b, want time.Duration }{{0, 0, 0}, {0, 3, 3}, {3, 0, 3}, {2, 3, 2}, {3, 2, 2}} {
		if got := timescale.MinNonZero(test.a, test.b); got != test.want {
			t.Errorf("Sooner(%d, %d) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
