// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// alertsStaleMessage is what a gate waits for if it waits for nothing else.
const alertsStaleMessage = "nothing is found to be wrong, but alerts must be asked for again before the upgrade goes on"

// WaitUntilHealthy waits, with the given reason, until no check finds anything and no
// alert fires. All that is found is in the message. In the unforced namespaces
// nothing ever forces a drain; an asterisk stands for any characters.
func WaitUntilHealthy(r client.Reader, reason string, alerts *Alerts, noForceNamespaces []string) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		found, retryAfter, err := runChecks(ctx, r, alerts, noForceNamespaces, run.Now)
		message := strings.Join(found, "; ")
		switch {
		case err != nil:
			return engine.Result{}, err
		case retryAfter > 0:
			return engine.WaitFor(retryAfter, reason, "%s", cmp.Or(message, alertsStaleMessage)), nil
		case message != "":
			return engine.Wait(reason, "%s", message), nil
		}
		return engine.Done("the cluster is healthy"), nil
	}
}

// PreCheckHealth is Healthy for people who look ahead: nothing is opened by it, so
// an answer about alerts may be as old as the interval.
func PreCheckHealth(r client.Reader, reason string, alerts *Alerts, noForceNamespaces []string) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		found, _, err := runChecks(ctx, r, alerts, noForceNamespaces, time.Time{})
		switch {
		case err != nil:
			return engine.Result{}, err
		case len(found) > 0:
			return engine.Wait(reason, "%s", strings.Join(found, "; ")), nil
		}
		return engine.Done("the cluster is healthy"), nil
	}
}

// IsHealthy says whether no check finds anything and no alert fires.
func IsHealthy(r client.Reader, alerts *Alerts, noForceNamespaces []string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		found, retryAfter, err := runChecks(ctx, r, alerts, noForceNamespaces, time.Time{})
		if err == nil && len(found) == 0 && retryAfter > 0 {
			err = errors.New("checking the health of the cluster: " + alertsStaleMessage)
		}
		return err == nil && len(found) == 0, err
	}
}
