// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

func TestRunPreChecks_up_to_the_commit(t *testing.T) {
	t.Parallel()
	var checked []string
	newStep := func(name string, result Result, err error) Step {
		return Step{
			Name: name, Doc: "It is asked.",
			Do: func(context.Context, Run) (Result, error) {
				t.Errorf("%s was done", name)
				return Result{}, nil
			},
			PreCheck: func(ctx context.Context, run Run) (Result, error) {
				if _, bounded := ctx.Deadline(); !bounded || !run.Now.Equal(time.Unix(7, 0)) {
					t.Errorf("%s is called at %s, bounded: %t", name, run.Now, bounded)
				}
				checked = append(checked, name)
				return result, err
			},
		}
	}
	mute := newStep("Mute", Done(""), nil)
	mute.PreCheck = nil
	commit := newStep("Commit", Wait("NotYet", "it is not time"), nil)
	commit.Commit = &Commit{}
	book := Runbook{
		Steps: []Step{
			newStep("Well", Done("all is well"), nil),
			newStep("Ill", Wait("Unhealthy", "a node is ill"), nil),
			mute,
			newStep("Dark", Result{}, errors.New("no response")),
			newStep("Odd", Result{}, nil),
			newStep("Left", Skip("NotConfigured", "nothing to do"), nil),
			newStep("Hopeless", Fail("Never", "it cannot be"), nil),
			commit,
			newStep("Later", Wait("NotYet", "it is too early to ask"), nil),
		},
		Cleanup: []Step{newStep("Clean", Wait("NotYet", "it is not dirty"), nil)},
	}
	got := RunPreChecks(t.Context(), clock.RealClock{}, book, Run{Now: time.Unix(7, 0)})
	want := []PreCheckResult{
		{"Ill", "Unhealthy", "a node is ill", true},
		{"Dark", "CannotObserve", "no response", true},
		{"Odd", "Waiting", "", true},
		{"Left", "NotConfigured", "nothing to do", false},
		{"Hopeless", "Never", "it cannot be", true},
		{"Commit", "NotYet", "it is not time", true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("prospects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Well", "Ill", "Dark", "Odd", "Left", "Hopeless", "Commit"}, checked); diff != "" {
		t.Errorf("called (-want +got):\n%s", diff)
	}
}
