// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// FastestPass returns the processor time of a pass: the minimum of ten measurements, which other
// load on the machine hardly affects. Each measurement consists of many passes, because the kernel
// accounts for thread time in milliseconds.
func FastestPass(tb testing.TB, passes int, pass func()) time.Duration {
	tb.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fastest := time.Duration(math.MaxInt64)
	for range 10 {
		started := threadTime(tb)
		for range passes {
			pass()
		}
		fastest = min(fastest, (threadTime(tb)-started)/time.Duration(passes))
	}
	return fastest
}

// threadTime returns the processor time used by the thread.
func threadTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
