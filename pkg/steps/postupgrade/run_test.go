// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package postupgrade_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/postupgrade"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

var noon = time.Date(2020, 5, 1, 12, 0, 0, 0, time.UTC)

func TestRun(t *testing.T) {
	t.Parallel()
	down := errors.New("the connection was refused")
	reinit := []string{"FileIntegrityReinit"}
	for name, tc := range map[string]struct {
		names []string
		err   error
		after time.Duration // since the start of the step
		want  string        // the reason
		again time.Duration // until the next try; 0 if the step is over
	}{
		"not configured":                           {nil, down, 0, "NotConfigured", 0},
		"it is done":                               {reinit, nil, 0, engine.ReasonDone, 0},
		"done after a while":                       {reinit, nil, time.Hour, engine.ReasonDone, 0},
		"it cannot be done":                        {reinit, down, 0, "NotDone", time.Second},
		"it has not been possible for a while":     {reinit, down, 4 * time.Minute, "NotDone", 2 * time.Minute},
		"the last try is when patience ends":       {reinit, down, 9 * time.Minute, "NotDone", time.Minute},
		"skipped at the timeout":                   {reinit, down, 10 * time.Minute, "NotDone", 0},
		"skipped after a long pause":               {reinit, down, time.Hour, "NotDone", 0},
		"the clock has jumped back":                {reinit, down, -time.Hour, "NotDone", time.Second},
		"unknown procedure":                        {[]string{"Dance", "FileIntegrityReinit"}, nil, 0, "NotDone", time.Second},
		"each that cannot be done is named":        {[]string{"Dance", "FileIntegrityReinit"}, down, 0, "NotDone", time.Second},
		"what is done is named in the given order": {[]string{"FileIntegrityReinit", "FileIntegrityReinit"}, nil, 0, engine.ReasonDone, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := serve(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return tc.err }})
			got, err := postupgrade.Run(on, first, tc.names)(t.Context(), engine.Run{Started: noon, Since: noon, Now: noon.Add(tc.after)})
			golden.Texts(t, "", got.Message())
			if err != nil || got.Reason() != tc.want || got.After() != tc.again || got.Passed() != (tc.again == 0) {
				t.Errorf("got %+v, %v, want %s and the next try in %s", got, err, tc.want, tc.again)
			}
		})
	}
}

func TestProcedures_match_the_configuration(t *testing.T) {
	t.Parallel()
	settings := new(config.Config).Settings()
	at := slices.IndexFunc(settings, func(s config.Setting) bool { return s.Path == "postUpgrade.procedures" })
	if diff := cmp.Diff(postupgrade.Names(), settings[at].Value.(config.EnumListSetting).Allowed); diff != "" {
		t.Errorf("names (-procedures +configuration):\n%s", diff)
	}
}

// An API server that does not respond counts as an error and does not block forever.
func TestProcedure_that_takes_too_long_ends(t *testing.T) {
	t.Parallel()
	on := serve(t, interceptor.Funcs{List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the call has no deadline of its own")
		}
		return context.DeadlineExceeded
	}})
	got, err := postupgrade.Run(on, first, []string{"FileIntegrityReinit"})(t.Context(), engine.Run{Since: noon, Now: noon.Add(time.Hour)})
	if err != nil || got.Reason() != "NotDone" || !got.Passed() || !strings.Contains(got.Message(), "deadline") {
		t.Errorf("got %+v, %v", got, err)
	}
}
