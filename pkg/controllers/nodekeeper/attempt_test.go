// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestActiveAttempt_of_several_kinds(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	unavailable := errors.New("the cache is not filled")
	source := func(err error, attempts ...Attempt) AttemptSource {
		return AttemptSource{Active: func(context.Context, client.Reader) ([]Attempt, error) { return attempts, err }}
	}
	first, second := Attempt{Key: "config", StartTime: start}, Attempt{Key: "job", StartTime: start.Add(time.Hour)}
	for name, tc := range map[string]struct {
		sources []AttemptSource
		want    *Attempt
		wantErr error
	}{
		"no kind":                    {},
		"no attempt":                 {sources: []AttemptSource{source(nil), source(nil)}},
		"attempt of the first kind":  {sources: []AttemptSource{source(nil, first), source(nil)}, want: &first},
		"attempt of the second kind": {sources: []AttemptSource{source(nil), source(nil, second)}, want: &second},
		"attempts of both kinds":     {sources: []AttemptSource{source(nil, second), source(nil, first)}, want: &second},
		"unknown attempts of a kind": {sources: []AttemptSource{source(nil, first), source(unavailable)}, wantErr: unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := (&Reconciler{Sources: tc.sources}).activeAttempt(t.Context())
			if !errors.Is(err, tc.wantErr) {
				t.Fatalf("got error %v, want %v", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("active attempt (-want +got):\n%s", diff)
			}
		})
	}
}
