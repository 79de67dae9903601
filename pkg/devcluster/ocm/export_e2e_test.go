// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package ocm

import "context"

// StopRegistration stops the registration agent of a cluster.
func (s *Spoke) StopRegistration() error { return s.agents[0].Stop(grace) }

// StartRegistration starts the registration agent of a cluster again.
func (s *Spoke) StartRegistration(ctx context.Context, f *Fleet) error {
	return s.startRegistration(ctx, f.Path("bootstrap.kubeconfig"))
}
