// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package timescale_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
)

func TestSpeed_divides_durations_but_Never(t *testing.T) {
	t.Parallel()
	if got := timescale.Speed(60).Scale(timescale.Duration(time.Hour)); got != time.Minute {
		t.Errorf("an hour takes %s at speed 60", got)
	}
	if got := timescale.Speed(60).Scale(timescale.Never); got < 24*365*time.Hour {
		t.Errorf("never takes %s at speed 60", got)
	}
}

func TestDuration_round_trip(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`"1h30m0s"`, `"never"`, `"0s"`} {
		var d timescale.Duration
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		if encoded, err := json.Marshal(d); err != nil || string(encoded) != text {
			t.Errorf("%s is encoded as %s (%v)", text, encoded, err)
		}
		if errs := d.Validate(nil); len(errs) > 0 {
			t.Errorf("%s: %v", text, errs)
		}
	}
}

func TestDuration_rejects_other_texts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`"5"`, `5`, `"-5s"`, `"sometimes"`, `""`, `{}`} {
		var d timescale.Duration
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		if errs := d.Validate(nil); len(errs) == 0 {
			t.Errorf("%s was decoded as %s", text, d)
		}
	}
}

func TestDuration_null_is_unset(t *testing.T) {
	t.Parallel()
	d := timescale.Duration(time.Minute)
	if err := json.Unmarshal([]byte("null"), &d); err != nil || d != timescale.Duration(time.Minute) {
		t.Errorf("got %s (%v)", d, err)
	}
}

func TestMinNonZero(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ a, b, want time.Duration }{{0, 0, 0}, {0, 3, 3}, {3, 0, 3}, {2, 3, 2}, {3, 2, 2}} {
		if got := timescale.MinNonZero(test.a, test.b); got != test.want {
			t.Errorf("MinNonZero(%d, %d) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
