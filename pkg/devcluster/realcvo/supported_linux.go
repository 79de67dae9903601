// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realcvo

import (
	"fmt"
	"os"
)

// supported returns an error if this process may not change the root folder of a child process.
func supported() error {
	if user := os.Geteuid(); user != 0 {
		return fmt.Errorf("this is user %d", user)
	}
	return nil
}
