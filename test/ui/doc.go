// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui tests the pages of "oc update report" and "oc update fleet report" in headless Chromium. It is a module of its
// own: the product must not link a browser driver.
package ui
