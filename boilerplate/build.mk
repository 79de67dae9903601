# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Our own programs, and the demonstration that they make.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
IMG ?= managed-upgrade-operator:$(VERSION)
IMAGE ?= $(IMG)
CONTAINER_ENGINE ?= $(if $(shell command -v podman),podman,docker)
SCENARIO ?=
ALERTS ?=
KEEP ?=
REAL ?=
LDFLAGS = -X github.com/managed-upgrade/managed-upgrade-operator/pkg/manager.version=$(VERSION)
IMAGE_ARGS = $(foreach name,GO_IMAGE GOFIPS140 VERSION,$(if $($(name)),--build-arg $(name)=$($(name))))

.PHONY: build
build: ## Build our programs into bin/.
	@mkdir -p bin
	@hack/go-build.sh -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

# The demo runs the operator's controllers in virtual time, or, with REAL=1, its program on a real control plane.
DEMO_REAL = $(REAL)$(ALERTS)$(KEEP)

.PHONY: demo
demo: $(if $(DEMO_REAL),$(CONTROL_PLANE) $(if $(ALERTS),$(MONITORING)) build,bin/devcluster) ## Upgrade a simulated cluster in virtual time, and print each step. SCENARIO=name takes another scenario; REAL=1 takes a real API server, ALERTS=1 Prometheus and Alertmanager, too, and KEEP=1 keeps all that up.
ifneq ($(strip $(DEMO_REAL)),)
	bin/devcluster demo $(if $(SCENARIO),--scenario=$(SCENARIO),--speed=240) $(if $(ALERTS),--monitoring) $(if $(KEEP),--keep)
else
	bin/devcluster simulate $(or $(SCENARIO),healthy-z) --speed=1 --describe
endif

.PHONY: bin/devcluster
bin/devcluster:
	@mkdir -p bin
	@hack/go-build.sh -ldflags '$(LDFLAGS)' -o bin/ ./cmd/devcluster

.PHONY: bin/kubectl-update
bin/kubectl-update:
	@mkdir -p bin
	@hack/go-build.sh -ldflags '$(LDFLAGS)' -o bin/ ./cmd/kubectl-update

.PHONY: demo-fleet
demo-fleet: $(CONTROL_PLANE) $(if $(REAL),$(OCM),bin/placement) build ## Upgrade twelve simulated clusters of a fleet, one of which fails, and retry. REAL=1 takes two real clusters.
	bin/devcluster fleet demo $(if $(REAL),--real)

.PHONY: image
image: ## Build the container image. IMAGE=name:tag names it, PLATFORM=linux/arm64 is of another machine, GOFIPS140=v1.0.0 is for FIPS mode.
	$(CONTAINER_ENGINE) build $(if $(PLATFORM),--platform=$(PLATFORM)) $(IMAGE_ARGS) --tag $(IMAGE) .

.PHONY: clean
clean: ## Remove what was built and what the dev cluster left, tools included.
	rm -rf bin .devcluster
