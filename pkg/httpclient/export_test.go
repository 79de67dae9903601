// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package httpclient

// SetServiceAccountDir sets the directory where the token of the pod's ServiceAccount is mounted.
func (c *Client) SetServiceAccountDir(dir string) { c.serviceAccountDirs = []string{dir} }
