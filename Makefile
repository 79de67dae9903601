# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# What can be built, run, and checked here. `make` alone lists the targets.

include boilerplate/help.mk
include boilerplate/tools.mk
include boilerplate/build.mk
include boilerplate/install.mk
include boilerplate/test.mk
include boilerplate/generate.mk
include boilerplate/check.mk
