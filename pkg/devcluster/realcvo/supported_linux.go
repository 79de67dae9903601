// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realcvo

import (
	"fmt"
	"os"
)

// supported says why a process cannot be given a root folder of its own, if it cannot.
func supported() error {
	if user := os.Geteuid(); user != 0 {
		return fmt.Errorf("this is user %d", user)
	}
	return nil
}
