// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// simulatorLog returns a logger that writes to a file and a function that closes the file.
func simulatorLog(path string) (logr.Logger, func() error, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // in our state folder
	if err != nil {
		return logr.Discard(), nil, fmt.Errorf("opening the log file of the simulators: %w", err)
	}
	logger := funcr.New(func(prefix, args string) {
		// Write errors are ignored.
		_, _ = fmt.Fprintln(file, time.Now().Format(time.RFC3339Nano), prefix, args)
	}, funcr.Options{})
	return logger, file.Close, nil
}
