// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// ExitCode is the exit code of the program. Scripts rely on the values.
type ExitCode int

// The exit codes. Each verdict has one, so a script need not parse a screen.
const (
	// ExitDone means that the command succeeded, and that the cluster is not being updated.
	ExitDone ExitCode = 0
	// ExitFailed means that the command could not do its work.
	ExitFailed ExitCode = 1
	// ExitUsage means that the command line is invalid.
	ExitUsage ExitCode = 2
	// ExitProgressing means that an update is progressing.
	ExitProgressing ExitCode = 10
	// ExitWaiting means that an update waits for something that ends without a person.
	ExitWaiting ExitCode = 20
	// ExitActionRequired means that a person must act.
	ExitActionRequired ExitCode = 30
	// ExitUnknown means that too much data is missing for a verdict.
	ExitUnknown ExitCode = 40
)

// ExitCodes returns the exit codes and their meanings, in ascending order.
func ExitCodes() []ExitMeaning {
	return []ExitMeaning{
		{ExitDone, "the command succeeded; no update is in progress"},
		{ExitFailed, "the command failed; standard error has one line with the reason and the next step"},
		{ExitUsage, "the command line is invalid"},
		{ExitProgressing, "an update is progressing"},
		{ExitWaiting, "an update waits, and continues without a person"},
		{ExitActionRequired, "a person must act: the update is stuck, waits for a person, or was not started"},
		{ExitUnknown, "too much data is missing for a verdict"},
	}
}

// ExitMeaning describes an exit code.
type ExitMeaning struct {
	Code    ExitCode
	Meaning string
}

// ExitError ends the program with an exit code. Err is printed; nil if the command has printed everything.
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

// ExitWith returns the error by which a command ends the program with an exit code without a message.
// It returns nil for ExitDone.
func ExitWith(code ExitCode) error {
	if code == ExitDone {
		return nil
	}
	return &ExitError{code: code}
}

// UsageError returns an error in the command line.
func UsageError(format string, args ...any) error {
	return &ExitError{code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// CodeOf returns the exit code of the error that a command returned.
func CodeOf(err error) ExitCode {
	if err == nil {
		return ExitDone
	}
	if exit, ok := errors.AsType[*ExitError](err); ok {
		return exit.code
	}
	return ExitFailed
}

// Refused returns the error of a command that does not do what is asked, because a person must act first.
func Refused(format string, args ...any) error {
	return &ExitError{code: ExitActionRequired, Err: fmt.Errorf(format, args...)}
}

// ValidateRelease returns an error unless the value of a flag is a release.
func ValidateRelease(flag, release string) error {
	if release == "" {
		return UsageError("--%s: is required, for example --%s 4.20.8", flag, flag)
	}
	if err := clusterstate.ValidateVersion(release); err != nil {
		return UsageError("--%s: is %q, must be a release such as 4.20.8", flag, release)
	}
	return nil
}
