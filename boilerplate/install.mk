# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Installation into the cluster of the current kubeconfig, by the names that kubebuilder uses.

KUBECTL ?= $(if $(shell command -v oc),oc,kubectl)
DEPLOY ?= deploy
CONFIG ?= hack/run.yaml

.PHONY: install
install: ## Install the CRDs into the current cluster.
	$(KUBECTL) apply --server-side -k deploy/crds

.PHONY: uninstall
uninstall: ## Remove the CRDs from the current cluster, and with them all upgrades.
	KUBECTL='$(KUBECTL)' hack/undeploy.sh deploy/crds

.PHONY: deploy
deploy: ## Install the operator, as image IMG, into the current cluster. DEPLOY=folder deploys another folder, such as deploy/hub.
	KUBECTL='$(KUBECTL)' hack/render.sh $(DEPLOY) $(IMG) $(shell git describe --tags --exact-match 2>/dev/null) | $(KUBECTL) apply --server-side -f -

.PHONY: hive
hive: ## Write dist/hive.yaml, the SelectorSyncSet by which Hive installs the operator as image IMG.
	mkdir -p dist
	KUBECTL='$(KUBECTL)' hack/hive.sh $(IMG) $(shell git describe --tags --exact-match 2>/dev/null) >dist/hive.yaml

.PHONY: undeploy
undeploy: ## Remove the operator and its CRDs from the current cluster, in the order that docs/uninstall.md gives.
	KUBECTL='$(KUBECTL)' hack/undeploy.sh $(DEPLOY)

.PHONY: run
run: ## Run the operator on this machine against the current cluster. ARGS='--flag' are its flags, CONFIG=file is its configuration.
	go run -ldflags '$(LDFLAGS)' ./cmd/operator --leader-elect=false --metrics-bind-address=0 --config=$(CONFIG) $(ARGS)

.PHONY: docker-build
docker-build: image ## Build the container image, as the target image does.

.PHONY: docker-push
docker-push: ## Push the container image IMG.
	$(CONTAINER_ENGINE) push $(IMG)

PLATFORMS ?= linux/amd64,linux/arm64

.PHONY: image-multi
image-multi: ## Build and push the container image IMG for all PLATFORMS, with docker buildx.
	docker buildx build --platform=$(PLATFORMS) $(IMAGE_ARGS) --tag $(IMG) --push .

.PHONY: manifests
manifests: bin/controller-gen ## Generate the CRDs and the permissions.
	hack/update-crds.sh
	hack/update-rbac.sh

.PHONY: fmt
fmt: format ## Format the code, as the target format does.

.PHONY: vet
vet: ## Run go vet, with the build tags of all tests.
	go vet -tags e2e,cvo ./...

.PHONY: bundle
bundle: bin/operator-sdk bin/kubectl ## Generate and validate the bundle for the Operator Lifecycle Manager. VERSION=v0.2.0 REPLACES=v0.1.0 upgrades from a version.
	VERSION='$(BUNDLE_VERSION)' REPLACES='$(REPLACES)' IMG='$(BUNDLE_OPERATOR_IMG)' hack/update-bundle.sh

BUNDLE_IMG ?= managed-upgrade-operator-bundle:$(VERSION)
# Without a VERSION or an IMG of the caller, the bundle is the one of the repository.
BUNDLE_VERSION = $(if $(filter file,$(origin VERSION)),,$(VERSION))
BUNDLE_OPERATOR_IMG = $(if $(filter file,$(origin IMG)),,$(IMG))

CATALOG_BUNDLES ?= bundle

.PHONY: catalog
catalog: bin/opm ## Write the file-based catalog dist/catalog/catalog.yaml of the bundles in the folders CATALOG_BUNDLES, oldest first.
	mkdir -p dist/catalog
	hack/catalog.sh $(CATALOG_BUNDLES) >dist/catalog/catalog.yaml
	bin/opm validate dist/catalog

.PHONY: bundle-build
bundle-build: ## Build the image BUNDLE_IMG of the bundle.
	@command -v "$(CONTAINER_ENGINE)" >/dev/null || { echo "make bundle-build: $(CONTAINER_ENGINE) is not installed: install podman or docker, or name an engine by CONTAINER_ENGINE=" >&2; exit 1; }
	$(CONTAINER_ENGINE) build --file bundle.Dockerfile --tag $(BUNDLE_IMG) .

.PHONY: release
release: bin/operator-sdk bin/cyclonedx-gomod ## Write a release into dist/: archives of the plugin, manifests with image IMG, bundle, bill of materials, checksums. VERSION=v0.1.0 names it.
	KUBECTL='$(KUBECTL)' IMG='$(IMG)' hack/release.sh $(VERSION)
