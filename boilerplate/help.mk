# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Shared by every include: the shell, and help made of the `target: ## sentence` lines.

SHELL := /usr/bin/env bash -o pipefail -e
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN { FS = ":[^#]*## "; print "make TARGET [NAME=value]\n" } \
		/^[a-z0-9-]+:[^#]*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
