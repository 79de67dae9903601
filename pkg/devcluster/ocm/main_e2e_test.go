// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package ocm_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // clients log errors while an API server stops
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
