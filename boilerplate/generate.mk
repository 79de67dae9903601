# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Generated files, and checks that need no compiler. A generated kind has a pair of scripts, hack/update-KIND.sh and
# hack/verify-KIND.sh; a check has a hack/verify-KIND.sh alone.

GENERATORS := bin/controller-gen bin/crd-ref-docs bin/mockgen bin/operator-sdk bin/opm bin/kubectl bin/scorecard
CHECKERS := bin/golangci-lint

.PHONY: generate
generate: bin/controller-gen bin/mockgen ## Generate what the code needs: deepcopy functions, CRDs, RBAC, mocks.
	hack/update-deepcopy.sh
	hack/update-crds.sh
	hack/update-rbac.sh
	hack/update-mocks.sh

.PHONY: update
update: $(GENERATORS) ## Generate every generated file.
	@for script in hack/update-*.sh; do echo "$$script"; "$$script"; done

.PHONY: verify
verify: $(GENERATORS) $(CHECKERS) ## Check generated files, modules, links, and formatting; names what is stale.
	@stale=0; for script in hack/verify-*.sh; do echo "$$script"; "$$script" || stale=1; done; exit $$stale

.PHONY: docs
docs: bin/hugo ## Build the documentation site of docs/ into dist/site: pages of this VERSION, with a search, and links to the versions that are there.
	hack/site.sh '$(VERSION)' dist/site
	@echo "to read it: python3 -m http.server --bind 127.0.0.1 --directory dist/site"
