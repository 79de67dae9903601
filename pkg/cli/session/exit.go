// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// ExitCode is the exit code of the program. Scripts rely on its values.
type ExitCode int

// Exit codes. Each verdict has its own, so scripts do not need to parse the output.
const (
	// ExitDone is the exit code if the command succeeded and no update is in progress.
	ExitDone ExitCode = 0
	// ExitFailed is the exit code if the command failed.
	ExitFailed ExitCode = 1
	// ExitUsage is the exit code if the command line is invalid.
	ExitUsage ExitCode = 2
	// ExitProgressing is the exit code if an update is making progress.
	ExitProgressing ExitCode = 10
	// ExitWaiting is the exit code if an update is waiting and will continue without user action.
	ExitWaiting ExitCode = 20
	// ExitActionRequired is the exit code if user action is required.
	ExitActionRequired ExitCode = 30
	// ExitUnknown is the exit code if too much data is missing for a verdict.
	ExitUnknown ExitCode = 40
)

// ExitCodes returns the exit codes with descriptions, in ascending order.
func ExitCodes() []ExitMeaning {
	return []ExitMeaning{
		{ExitDone, "the command succeeded; no update is in progress"},
		{ExitFailed, "the command failed; one line on standard error states the reason and the next step"},
		{ExitUsage, "the command line is invalid"},
		{ExitProgressing, "an update is making progress"},
		{ExitWaiting, "an update is waiting and will continue without user action"},
		{ExitActionRequired, "action is required: the update is stuck, waits for user action, or was not started"},
		{ExitUnknown, "too much data is missing for a verdict"},
	}
}

// ExitMeaning describes an exit code.
type ExitMeaning struct {
	Code    ExitCode
	Meaning string
}

// ExitError ends the program with an exit code. Err is printed unless it is nil because the command has
// printed everything already.
type ExitError struct {
	code ExitCode
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// ExitWith returns an error that ends the program with an exit code but without a message. It returns nil for
// ExitDone.
func ExitWith(code ExitCode) error {
	if code == ExitDone {
		return nil
	}
	return &ExitError{code: code}
}

// UsageError returns an error for an invalid command line.
func UsageError(format string, args ...any) error {
	return &ExitError{code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// CodeOf returns the exit code for an error returned by a command.
func CodeOf(err error) ExitCode {
	if err == nil {
		return ExitDone
	}
	if exit, ok := errors.AsType[*ExitError](err); ok {
		return exit.code
	}
	return ExitFailed
}

// Refused returns the error of a command that refuses to continue because user action is required first.
func Refused(format string, args ...any) error {
	return &ExitError{code: ExitActionRequired, Err: fmt.Errorf(format, args...)}
}

// ValidateRelease returns an error unless the value of a flag is a valid release.
func ValidateRelease(flag, release string) error {
	if release == "" {
		return UsageError("--%s: is required, for example --%s 4.20.8", flag, flag)
	}
	if err := clusterstate.ValidateVersion(release); err != nil {
		return UsageError("--%s: is %q, must be a release such as 4.20.8", flag, release)
	}
	return nil
}
