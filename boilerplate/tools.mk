# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Programs of others, each pinned by a `tool` line in a module under hack/tools and built into bin/ when it is first needed.
# Ask for one as a prerequisite: `lint: bin/golangci-lint`.

comma := ,

# $(call tool,name,module under hack/tools,package,how long a build takes cold on two cores[,build tags])
define tool
TOOLS += bin/$(1)
bin/$(1): hack/tools/$(2)/go.mod hack/tools/$(2)/go.sum hack/build-tool.sh
	@hack/build-tool.sh $(1) $(2) $(3) "$(4)" $(5)
endef

$(eval $(call tool,etcd,kubernetes,go.etcd.io/etcd/server/v3,45 s))
$(eval $(call tool,kube-apiserver,kubernetes,k8s.io/kubernetes/cmd/kube-apiserver,3 min))
$(eval $(call tool,kube-controller-manager,kubernetes,k8s.io/kubernetes/cmd/kube-controller-manager,90 s))
$(eval $(call tool,kubectl,kubernetes,k8s.io/kubernetes/cmd/kubectl,40 s))
CONTROL_PLANE := $(TOOLS)

# Only scenarios and tests that are about alerts want these. The one way in which Prometheus finds anything here is that it
# is told where it is; the other ways would double the build. Its web pages are not in the module.
$(eval $(call tool,prometheus,prometheus,github.com/prometheus/prometheus/cmd/prometheus,2 min,remove_all_sd))
$(eval $(call tool,promtool,prometheus,github.com/prometheus/prometheus/cmd/promtool,2 min,remove_all_sd))
$(eval $(call tool,alertmanager,alertmanager,github.com/prometheus/alertmanager/cmd/alertmanager,80 s))
MONITORING := $(filter-out $(CONTROL_PLANE),$(TOOLS))

# Only what is about the real cluster version operator wants this one.
$(eval $(call tool,cluster-version-operator,cluster-version-operator,github.com/openshift/cluster-version-operator/cmd/cluster-version-operator,2.5 min))

# Only what is about fleets wants these: Open Cluster Management's placement on a hub, and its registration and work on both sides.
$(eval $(call tool,placement,ocm,open-cluster-management.io/ocm/cmd/placement,3 min))
$(eval $(call tool,registration,ocm,open-cluster-management.io/ocm/cmd/registration,2 min))
$(eval $(call tool,work,ocm,open-cluster-management.io/ocm/cmd/work,30 s))
OCM := bin/placement bin/registration bin/work

$(eval $(call tool,controller-gen,generators,sigs.k8s.io/controller-tools/cmd/controller-gen,25 s))
$(eval $(call tool,crd-ref-docs,generators,github.com/elastic/crd-ref-docs,10 s))
$(eval $(call tool,mockgen,mockgen,go.uber.org/mock/mockgen,10 s))
$(eval $(call tool,golangci-lint,lint,sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter,2 min))
$(eval $(call tool,govulncheck,vulncheck,golang.org/x/vuln/cmd/govulncheck,15 s))

# For the test of the template for Hive: what "oc process" calls.
bin/process-template: $(wildcard test/e2e/process-template/*)
	go build -C test/e2e/process-template -trimpath -buildvcs=false -o ../../../$@ .

# For releases: the software bill of materials.
$(eval $(call tool,cyclonedx-gomod,sbom,github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod,20 s))

# For the bundle of the Operator Lifecycle Manager.
$(eval $(call tool,operator-sdk,operator-sdk,github.com/operator-framework/operator-sdk/cmd/operator-sdk,3 min,containers_image_openpgp$(comma)exclude_graphdriver_btrfs$(comma)exclude_graphdriver_devicemapper))
$(eval $(call tool,opm,operator-sdk,github.com/operator-framework/operator-registry/cmd/opm,20 s,containers_image_openpgp$(comma)exclude_graphdriver_btrfs$(comma)exclude_graphdriver_devicemapper))

# Only the tests of the chart want this one.
$(eval $(call tool,helm,helm,helm.sh/helm/v4/cmd/helm,3 min))

# Only the documentation site wants this one.
$(eval $(call tool,hugo,hugo,github.com/gohugoio/hugo,4 min))

# The tests that "operator-sdk scorecard" would run in a pod.
bin/scorecard: $(wildcard hack/tools/scorecard/*)
	GOWORK=off go build -C hack/tools/scorecard -trimpath -buildvcs=false -tags containers_image_openpgp$(comma)exclude_graphdriver_btrfs$(comma)exclude_graphdriver_devicemapper -o ../../../$@ .

# Only the tests that install the bundle want these: the Operator Lifecycle Manager's operator and catalog operator.
$(eval $(call tool,olm-operator,olm,github.com/operator-framework/operator-lifecycle-manager/cmd/olm,2 min,containers_image_openpgp$(comma)exclude_graphdriver_btrfs))
$(eval $(call tool,catalog-operator,olm,github.com/operator-framework/operator-lifecycle-manager/cmd/catalog,90 s,containers_image_openpgp$(comma)exclude_graphdriver_btrfs))
OLM := bin/olm-operator bin/catalog-operator bin/opm

.PHONY: tools
tools: $(CONTROL_PLANE) ## Build what the dev cluster runs: etcd and Kubernetes' programs, into bin/.
