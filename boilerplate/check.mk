# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that read the code, and the formatter.

# A cache of its own for each checkout: the shared one remembers findings by the path of the checkout that had them.
.PHONY: lint
lint: export GOLANGCI_LINT_CACHE := $(CURDIR)/bin/.golangci-lint
lint: bin/golangci-lint ## Lint; the import rules of the architecture are in .golangci.yml.
	bin/golangci-lint config verify
	bin/golangci-lint run ./...
	for example in $(dir $(wildcard docs/examples/*/go.mod)); do (cd $$example && go vet ./...) || exit 1; done

.PHONY: format
format: bin/golangci-lint ## Format the code as lint wants it.
	bin/golangci-lint fmt

.PHONY: vuln
vuln: bin/govulncheck ## Look for known vulnerabilities in all modules, with VULNDB or a copy of vuln.go.dev.
	hack/vuln.sh
