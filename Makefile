# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# What can be built, run, and checked here. `make` alone lists the targets.

# Only the race detector needs C. Everything else is built without it, so that the tests link what the programs were built
# from, and link it without gcc.
export CGO_ENABLED := 0

# Paths of the checkout are left out of what is compiled, so that programs, tests, tools, and other checkouts share one
# build cache. Information for debuggers is left out, too, which is a quarter of the first build; for one, build a program
# with `go build`.
BUILD_FLAGS = -trimpath -gcflags=all=-dwarf=false
export GOFLAGS := $(BUILD_FLAGS) $(filter-out $(BUILD_FLAGS),$(shell go env GOFLAGS))

include boilerplate/help.mk
include boilerplate/tools.mk
include boilerplate/build.mk
include boilerplate/install.mk
include boilerplate/test.mk
include boilerplate/generate.mk
include boilerplate/check.mk
