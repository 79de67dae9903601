# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Tests. Those that need a real API server carry the build tag e2e: the rules of the CRDs beside the API types (target
# rules), and everything else (target e2e). Two packages run at a time, the longest one first.

# At most E2E_CLUSTERS clusters of a package run at a time, three on each processor. Each takes some 600 MiB.

TEST_FLAGS ?=
E2E_CLUSTERS ?= $(shell echo $$((3 * $$(getconf _NPROCESSORS_ONLN))))
E2E_TIMEOUT ?= 45m
E2E_FILES = $(shell grep -rl --include='*_test.go' '^//go:build e2e' api pkg cmd test 2>/dev/null)
E2E_ALL = $(filter-out ./api/%,$(shell printf '%s\n' $(E2E_FILES) | xargs -r -n1 dirname | sort -ru | sed 's|^|./|'))
# E2E_PART limits the target e2e to a part, for machines that run them side by side: program or packages.
E2E_PART ?= program packages
E2E_PACKAGES = $(if $(filter program,$(E2E_PART)),$(filter ./test/e2e,$(E2E_ALL))) $(if $(filter packages,$(E2E_PART)),$(filter-out ./test/e2e,$(E2E_ALL)))
RULES_PACKAGES = $(shell printf '%s\n' $(filter api/%,$(E2E_FILES)) | xargs -r -n1 dirname | sort -u | sed 's|^|./|')
E2E_TESTS = $(shell grep -ohE '^func (Test|Example|Fuzz)\w+' $(E2E_FILES) | cut -d' ' -f2 | sort -u | paste -sd'|')

.PHONY: test
test: long histories ## Run the unit tests with all repetitions, random histories, the rules of the API, and one whole upgrade.
	@$(MAKE) --no-print-directory -j2 rules upgrade # the upgrade waits more than it computes

# Tests in virtual time allocate much and keep little: with fewer garbage collections they take an eighth less processor
# time, and so do the compiler and the linker. Tests of e2e measure the memory of programs, so they keep the default.
long histories seeds soak: export GOGC := 400

.PHONY: histories
histories: ## Run random histories of upgrades with fixed seeds, and those that have found defects.
	go test -vet=off ./pkg/simulation/histories -count 1 -run 'Test(Fixed|Failed)Seeds' -fixed

.PHONY: seeds
seeds: ## Check that each kept seed of a random history still fails once the bug that it found is back.
	go test ./pkg/simulation/histories -count 1 -run Mutants -mutants -timeout 0

SOAK ?= 60s
SOAK_FROM ?= 0
SOAK_HISTORIES ?= 0
SOAK_OBJECTS ?= 10000

FUZZ_TIME ?= 3s
.PHONY: soak
soak: ## Run fuzz targets, and random histories of upgrades with fresh seeds for SOAK, such as SOAK=10m, or SOAK_HISTORIES of them; from the seed SOAK_FROM, if it is set.
	go test ./pkg/simulation/histories -count 1 -run 'Test(Soak|Objects)$$' -objects $(SOAK_OBJECTS) -soak $(SOAK) -histories $(SOAK_HISTORIES) -from $(SOAK_FROM) -timeout 0 -v
	hack/fuzz.sh $(FUZZ_TIME)

MUTANTS ?= 200
MUTANTS_SEED ?= 1
MUTATED = ./pkg/engine ./pkg/lifecycle ./pkg/checks ./pkg/controllers/nodekeeper

.PHONY: mutants
mutants: ## Measure how many of MUTANTS defects, sampled by MUTANTS_SEED, the tests find, which takes an hour or two.
	go run ./hack/mutate -n $(MUTANTS) -seed $(MUTANTS_SEED) $(MUTATED)

.PHONY: unit
unit: REPETITIONS := -short
unit: long ## Run the unit tests with few repetitions of virtual time. TEST_FLAGS='-run Name -v' goes to go test.

# The target lint runs the analyzers of go vet. Here they would read all dependencies, too, which takes an eighth of the
# first build.
UNIT_FLAGS = -vet=off $(REPETITIONS) $(TEST_FLAGS)

.PHONY: long
long: ## Run the unit tests with all repetitions of virtual time: each fault of each write, a year of upgrades.
	go test $(UNIT_FLAGS) ./...
	cd docs/examples/custom-upgrader && go test $(UNIT_FLAGS) ./...
	cd docs/examples/update-informer && go test $(UNIT_FLAGS) ./...
	cd docs/examples/chat && go test $(UNIT_FLAGS) ./...

.PHONY: race
race: ## Run the unit tests under the race detector, which needs gcc, with few repetitions of virtual time.
	@command -v "$${CC:-gcc}" >/dev/null || { echo "make race: the race detector needs a C compiler, and $${CC:-gcc} is not there: install gcc, or name one by CC=" >&2; exit 1; }
	CGO_ENABLED=1 go test -race -short -timeout 30m $(TEST_FLAGS) ./...

# The whole suite compares the audited requests with the permissions.
E2E_PERMISSIONS ?= $(if $(filter -run%,$(TEST_FLAGS)),,1)

.PHONY: rules
rules: $(CONTROL_PLANE) ## Test on a real API server what the CRDs accept and reject.
	go test -vet=off -tags e2e -count 1 -p 2 -timeout $(E2E_TIMEOUT) -run '^($(E2E_TESTS))$$' $(TEST_FLAGS) $(RULES_PACKAGES)

.PHONY: upgrade
upgrade: $(CONTROL_PLANE) build ## Upgrade a dev cluster through the operator's binary, on a real API server.
	go test -vet=off -tags e2e -count 1 -timeout $(E2E_TIMEOUT) -run '^TestScenarios$$/^healthy-z$$' ./test/e2e

.PHONY: e2e
e2e: export E2E_PERMISSIONS := $(E2E_PERMISSIONS)
e2e: $(CONTROL_PLANE) $(MONITORING) bin/process-template bin/helm build ## Run all other tests that need a real API server. TEST_FLAGS='-run Name -v' goes to go test.
	go test -tags e2e -count 1 -p 2 -parallel $(E2E_CLUSTERS) -timeout $(E2E_TIMEOUT) -run '^($(E2E_TESTS))$$' $(TEST_FLAGS) $(E2E_PACKAGES)

.PHONY: e2e-all
e2e-all: export E2E_SCENARIOS := all
e2e-all: E2E_TIMEOUT = 4h
e2e-all: e2e ## Run the tests of e2e with all scenarios through the binary, which takes two to three hours: some wait in real time.

.PHONY: pictures
pictures: export DASHBOARD_PICTURES := $(CURDIR)/docs/pictures
pictures: $(CONTROL_PLANE) $(MONITORING) build ## Draw the dashboards for the docs, from what Prometheus answers.
	go test -tags e2e -count 1 -timeout 15m -run '^TestDashboards(_of_status_and_fleets)?$$' ./test/e2e

.PHONY: recordings
recordings: $(CONTROL_PLANE) bin/devcluster ## Record updates of a dev cluster to another patch and another minor version, which the tests of oc update status replay.
	bin/devcluster record --dir .devcluster-patch pkg/cli/status/testdata/recordings/patch.json.gz
	bin/devcluster record --dir .devcluster-minor --release 4.21.0=stable-4.21 pkg/cli/status/testdata/recordings/minor.json.gz

.PHONY: e2e-cvo
e2e-cvo: linux-and-root $(CONTROL_PLANE) bin/prometheus bin/alertmanager bin/cluster-version-operator build ## Run the tests with the real cluster version operator, which takes Linux and root.
	go test -tags cvo -count 1 -timeout 35m $(TEST_FLAGS) ./test/e2e

.PHONY: e2e-fleet
e2e-fleet: $(CONTROL_PLANE) $(OCM) build ## Run the tests of fleets: the hub, a real Placement controller, and simulated clusters.
	go test -tags fleet -count 1 -p 1 -timeout 25m $(TEST_FLAGS) ./pkg/devcluster/ocm

.PHONY: e2e-olm
e2e-olm: $(CONTROL_PLANE) $(OLM) bin/operator-sdk build ## Install, upgrade, and uninstall the bundle by the real Operator Lifecycle Manager.
	go test -tags e2e,olm -count 1 -timeout 10m -parallel 16 -run '^TestOLM$$' $(TEST_FLAGS) ./test/e2e

# PICTURES is the folder into which the pages are drawn: PICTURES=docs/pictures renews those of the docs.
PICTURES ?= bin/pictures

.PHONY: e2e-ui
e2e-ui: bin/kubectl-update ## Open the reports that the program serves in headless Chromium, as on a phone and on a laptop, and draw them into PICTURES.
	@mkdir -p $(PICTURES)
	@chromium="$$(hack/chromium.sh)" && cd test/ui && CHROMIUM="$$chromium" PICTURES=$(abspath $(PICTURES)) go test -count 1 -timeout 5m $(TEST_FLAGS) .

.PHONY: linux-and-root
linux-and-root:
	@[ "$$(uname -s)-$$(id -u)" = Linux-0 ] || { echo "make e2e-cvo: the real cluster version operator needs Linux and root, and this is user $$(id -un) on $$(uname -s)" >&2; exit 1; }

BENCH_PACKAGES = $(shell grep -rl --include='*_test.go' '^func Benchmark' api pkg cmd test 2>/dev/null | xargs -r -n1 dirname | sort -u | sed 's|^|./|')

.PHONY: bench
bench: $(CONTROL_PLANE) $(MONITORING) $(OCM) build ## Measure the figures of docs/benchmarks.md, which takes an hour. TEST_FLAGS='-bench Idle' measures only that.
	go test -tags e2e,fleet -run '^$$' -bench . -count 1 -p 1 -timeout 2h $(TEST_FLAGS) $(BENCH_PACKAGES)

# CLUSTERS is the number of simulated clusters; the limits of docs/benchmarks.md are those of 3500.
CLUSTERS ?= 3500

.PHONY: bench-fleet
bench-fleet: $(CONTROL_PLANE) bin/placement build ## Measure the rollout of a fleet, which takes twenty minutes on an idle machine. CLUSTERS=300 takes fewer clusters.
	go test -tags e2e,fleet -run '^$$' -bench Rollout -count 1 -timeout 90m $(TEST_FLAGS) ./pkg/devcluster/ocm -clusters $(CLUSTERS)
