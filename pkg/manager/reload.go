// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// reloadInterval is the time between two reads of the configuration. A kubelet takes up to a minute
// to update a changed ConfigMap in its pods.
const reloadInterval = 10 * time.Second

// Reloader follows a configuration file. A changed configuration is applied as a whole; while the file
// is invalid, the last valid one stays in effect.
type Reloader[C any] struct {
	// Read reads the file.
	Read func() (C, error)
	// Apply puts a configuration into effect, or returns why it is invalid and changes nothing.
	Apply func(C) error
	// Observe is called after each change: of the configuration in effect, or of the error that keeps
	// the file from being in effect. The error is one line, empty if the file is in effect.
	Observe func(configError string)
	Clock   clock.WithTicker
	Log     logr.Logger

	current     C
	configError string
}

// Init puts the first configuration into effect. Nothing was reconciled with another one, so it is not
// a change.
func (r *Reloader[C]) Init(first C) error {
	if err := r.Apply(first); err != nil {
		return err
	}
	r.current = first
	return nil
}

// Start follows the file until the context ends.
func (r *Reloader[C]) Start(ctx context.Context) error {
	ticker := r.Clock.NewTicker(reloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			r.reload()
		}
	}
}

// NeedLeaderElection returns false: every replica follows the file, since it may become the leader.
func (r *Reloader[C]) NeedLeaderElection() bool { return false }

// reload reads the file once.
func (r *Reloader[C]) reload() {
	next, err := r.Read()
	changed := err == nil && !reflect.DeepEqual(next, r.current)
	if changed {
		err = r.Apply(next)
	}
	configError := ""
	if err != nil {
		configError, changed = SingleLine(err), false
	}
	if !changed && configError == r.configError {
		return
	}
	if changed {
		r.current = next
	}
	r.configError = configError
	if configError != "" {
		r.Log.Error(errors.New(configError), "the configuration is invalid; using the last valid one")
	} else {
		r.Log.Info("the configuration file is in effect")
	}
	r.Observe(configError)
}

// SingleLine returns the text of an error on one line.
func SingleLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
