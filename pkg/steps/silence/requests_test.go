// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package silence_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/mock/gomock"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
)

// The tests in this file declare each expected request. Any other request fails the test.

func newMock(t *testing.T) (*MockAlertmanager, *silence.Silencer) {
	t.Helper()
	mock := NewMockAlertmanager(gomock.NewController(t))
	return mock, &silence.Silencer{Alertmanager: mock}
}

func runAt(now time.Time) engine.Run { return engine.Run{Started: noon, Since: noon, Now: now} }

// silenced returns the silences that a window created, active until the given time.
func silenced(t *testing.T, scope silence.Scope, until time.Time) []alertmanager.Silence {
	t.Helper()
	mock, silencer := newMock(t)
	var created []alertmanager.Silence
	mock.EXPECT().Silences(gomock.Any(), gomock.Any(), gomock.Any()).Return(nil, noon, nil)
	mock.EXPECT().Upsert(gomock.Any(), gomock.Any()).AnyTimes().DoAndReturn(func(_ context.Context, s alertmanager.Silence) (string, error) {
		s.ID, s.State, s.EndsAt = string(rune('a'+len(created))), alertmanager.Active, until
		created = append(created, s)
		return s.ID, nil
	})
	if _, err := silencer.Window(testAttempt, "X", scope, settings).Open()(t.Context(), runAt(noon)); err != nil {
		t.Fatal(err)
	}
	return created
}

func TestRequests_have_a_deadline(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]func(silence.Window) engine.UpgradeStep{
		"open": silence.Window.Open, "keep alive": silence.Window.KeepAlive, "close": silence.Window.Close,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mock, silencer := newMock(t)
			mock.EXPECT().Silences(gomock.Any(), gomock.Any(), gomock.Any()).DoAndReturn(
				func(ctx context.Context, _ ...alertmanager.Matcher) ([]alertmanager.Silence, time.Time, error) {
					until, bounded := ctx.Deadline()
					if left := until.Sub(clock.RealClock{}.Now()); !bounded || left <= 0 || left > 20*time.Second {
						t.Errorf("the request may take %s", left)
					}
					return nil, time.Time{}, context.DeadlineExceeded
				})
			_, _ = step(silencer.Window(testAttempt, "X", wide, settings))(t.Context(), runAt(noon))
		})
	}
}

func TestKeepAlive_makes_no_request_before_half_of_the_lease(t *testing.T) {
	t.Parallel()
	mock, silencer := newMock(t)
	window := silencer.Window(testAttempt, "X", wide, settings)
	mock.EXPECT().Silences(gomock.Any(), gomock.Any(), gomock.Any()).Return(nil, noon, nil)
	mock.EXPECT().Upsert(gomock.Any(), gomock.Any()).Return("a", nil)
	if _, err := window.Open()(t.Context(), runAt(noon)); err != nil {
		t.Fatal(err)
	}
	for passed := time.Duration(0); passed < settings.Lease/2; passed += time.Minute {
		if _, err := window.KeepAlive()(t.Context(), runAt(noon.Add(passed))); err != nil {
			t.Fatal(err)
		}
	}
	half := noon.Add(settings.Lease / 2)
	mock.EXPECT().Silences(gomock.Any(), gomock.Any(), gomock.Any()).Return(silenced(t, wide, noon.Add(settings.Lease)), half, nil)
	mock.EXPECT().Upsert(gomock.Any(), gomock.Cond(func(s alertmanager.Silence) bool {
		return s.ID == "a" && s.EndsAt.Equal(half.Add(settings.Lease))
	})).Return("a", nil)
	if _, err := window.KeepAlive()(t.Context(), runAt(half)); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_creates_before_it_ends_others(t *testing.T) {
	t.Parallel()
	mock, silencer := newMock(t)
	surplus := silenced(t, silence.Scope{Severities: []string{"critical"}}, noon.Add(settings.Lease))
	gomock.InOrder(
		mock.EXPECT().Silences(gomock.Any(), gomock.Any(), gomock.Any()).Return(surplus, noon, nil).Call,
		mock.EXPECT().Upsert(gomock.Any(), gomock.Any()).Return("new", nil).Call,
		mock.EXPECT().Expire(gomock.Any(), surplus[0].ID).Return(nil).Call,
	)
	if _, err := silencer.Window(testAttempt, "X", wide, settings).Open()(t.Context(), runAt(noon)); err != nil {
		t.Fatal(err)
	}
}

func TestClose_tries_to_end_each_silence(t *testing.T) {
	t.Parallel()
	mock, silencer := newMock(t)
	all := silenced(t, named, noon.Add(settings.Lease))
	if len(all) != 2 {
		t.Fatalf("%d silences, want 2", len(all))
	}
	mock.EXPECT().Silences(gomock.Any(), gomock.Any(), gomock.Any()).Return(all, noon, nil)
	mock.EXPECT().Expire(gomock.Any(), "a").Return(errors.New("connection refused"))
	mock.EXPECT().Expire(gomock.Any(), "b").Return(nil)
	result, err := silencer.Window(testAttempt, "X", named, settings).Close()(t.Context(), runAt(noon))
	if err == nil && result.Passed() {
		t.Errorf("got %+v, want another attempt", result)
	}
}

func TestCloseNow_tries_once(t *testing.T) {
	t.Parallel()
	mock, silencer := newMock(t)
	mock.EXPECT().Silences(gomock.Any(), gomock.Any()).Return(nil, time.Time{}, errors.New("connection refused"))
	silencer.CloseNow(t.Context(), testAttempt)
}

// The clock of Alertmanager ends silences: the operator's clock may be a day ahead and be set back
// later.
func TestOpen_asks_Alertmanager_for_the_time(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ says, want time.Time }{
		"it says one":  {noon, noon},
		"it says none": {time.Time{}, noon.Add(24 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mock, silencer := newMock(t)
			mock.EXPECT().Silences(gomock.Any(), gomock.Any(), gomock.Any()).Return(nil, tc.says, nil)
			mock.EXPECT().Upsert(gomock.Any(), gomock.Cond(func(s alertmanager.Silence) bool {
				return s.EndsAt.Equal(tc.want.Add(settings.Lease)) && s.StartsAt.Before(tc.want)
			})).Return("a", nil)
			if _, err := silencer.Window(testAttempt, "X", wide, settings).Open()(t.Context(), runAt(noon.Add(24*time.Hour))); err != nil {
				t.Fatal(err)
			}
		})
	}
}
