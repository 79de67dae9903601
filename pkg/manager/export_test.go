// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import "sigs.k8s.io/controller-runtime/pkg/handler"

var (
	MapperProvider = mapperProvider
	LogMissing     = logMissing
)

func (k Kind) Handler() handler.EventHandler { return k.handler() }
