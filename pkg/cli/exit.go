// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
)

// ExitCode is the exit code of the program. Scripts rely on the values.
type ExitCode int

// The exit codes. Each verdict has one, so that a script need not parse a screen.
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

// exitError ends the program with an exit code. Err is printed; nil means that the command has
// printed all that is to be printed.
type exitError struct {
	code ExitCode
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitWith returns the error by which a command ends the program with an exit code without a message.
// It returns nil for ExitDone.
func exitWith(code ExitCode) error {
	if code == ExitDone {
		return nil
	}
	return &exitError{code: code}
}

// usageError returns an error in the command line.
func usageError(format string, args ...any) error {
	return &exitError{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

// exitCode returns the exit code of the error that a command returned.
func exitCode(err error) ExitCode {
	if err == nil {
		return ExitDone
	}
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.code
	}
	return ExitFailed
}
