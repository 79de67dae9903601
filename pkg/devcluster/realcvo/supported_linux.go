// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realcvo

import (
	"fmt"
	"os"
)

// supported returns an error if a process cannot have its own root folder.
func supported() error {
	if user := os.Geteuid(); user != 0 {
		return fmt.Errorf("this is user %d", user)
	}
	return nil
}
