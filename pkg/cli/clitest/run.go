// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// Result is the outcome of a run.
type Result struct {
	Code        session.ExitCode
	Out, ErrOut string
}

// Run runs the commands of a root as a plugin of oc.
func Run(t *testing.T, rootOf func(*session.Session) *cobra.Command, args ...string) Result {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := session.Execute(t.Context(), session.Environment{
		Program: "/usr/bin/oc-update", Args: args, Clock: steppedClock{clocktesting.NewFakeClock(Now)}, Streams: streams,
		Terminal: &screen.Terminal{}, Version: "v1",
	}, rootOf)
	return Result{code, out.String(), errOut.String()}
}

// steppedClock is a clock whose timers fire immediately and advance the time.
type steppedClock struct{ *clocktesting.FakeClock }

func (c steppedClock) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	c.Step(d)
	return timer
}

// RunOn runs the commands of a root on a cluster. Its terminal is interactive only if there is an answer.
func RunOn(t *testing.T, rootOf func(*session.Session) *cobra.Command, cluster *FakeCluster, answer string, args ...string) Result {
	t.Helper()
	streams, in, out, errOut := genericiooptions.NewTestIOStreams()
	in.WriteString(answer)
	code := session.Execute(t.Context(), session.Environment{
		Program: "/usr/bin/oc-update", Args: args, Clock: clocktesting.NewFakeClock(Now), Streams: streams,
		Terminal: &screen.Terminal{Asks: answer != ""}, Cluster: cluster.Cluster,
	}, rootOf)
	return Result{code, out.String(), errOut.String()}
}
