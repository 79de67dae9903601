// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WholeLists returns a client whose cached lists are whole. A cache of controller-runtime cuts a list off at the limit,
// says of each list that it continues, and rejects the request for the next page, so code that reads page by page fails
// with it.
func WholeLists(cached client.Client) client.Client { return wholeLists{cached} }

type wholeLists struct{ client.Client }

// List reads a whole list.
func (c wholeLists) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, append(slices.Clip(opts), client.Limit(0))...)
	list.SetContinue("")
	return err
}
