// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WholeLists returns a client whose cached lists are complete. controller-runtime's cache truncates
// a list at the limit, claims that every list continues, and rejects requests for the next page.
// Code that reads lists page by page would fail.
func WholeLists(cached client.Client) client.Client { return wholeLists{cached} }

type wholeLists struct{ client.Client }

// List reads the complete list.
func (c wholeLists) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, append(slices.Clip(opts), client.Limit(0))...)
	list.SetContinue("")
	return err
}
