# The image of all programs for clusters, and of the command line: static programs, no shell, not root.
# --build-arg GOFIPS140=v1.0.0 builds programs for FIPS mode. GO_IMAGE is the builder: a release names it with its
# digest, see CONTRIBUTING.md. Nothing of it is in the image but programs, licenses, and certificates.
ARG GO_IMAGE=golang:1.26.8
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG TARGETOS=linux
ARG TARGETARCH
ARG VERSION=unknown
ARG GOFIPS140=off
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY LICENSE ./
COPY api api
COPY cmd/hub cmd/hub
COPY cmd/kubectl-update cmd/kubectl-update
COPY cmd/operator cmd/operator
COPY cmd/update-status-controller cmd/update-status-controller
COPY hack/licenses.sh hack/licenses.sh
COPY pkg pkg
RUN mkdir /out && CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} GOFIPS140=${GOFIPS140} go build -trimpath -buildvcs=false -ldflags "-s -w -X github.com/managed-upgrade/managed-upgrade-operator/pkg/manager.version=${VERSION}" -o /out ./cmd/hub ./cmd/kubectl-update ./cmd/operator ./cmd/update-status-controller
RUN GOOS=${TARGETOS} GOARCH=${TARGETARCH} hack/licenses.sh /licenses ./cmd/hub ./cmd/kubectl-update ./cmd/operator ./cmd/update-status-controller

FROM scratch
ARG VERSION=unknown
LABEL name="managed-upgrade-operator" \
      vendor="The Managed Upgrade Operator Authors" \
      maintainer="The Managed Upgrade Operator Authors" \
      version="${VERSION}" \
      release="1" \
      summary="Upgrades OpenShift clusters on schedule, and only while they are healthy" \
      description="The operator, the Update Status Controller, the hub of fleets, and the plugin of oc and kubectl" \
      io.k8s.display-name="Managed Upgrade Operator" \
      io.k8s.description="Upgrades OpenShift clusters on schedule, and only while they are healthy" \
      io.openshift.tags="upgrade,operator" \
      org.opencontainers.image.source="https://github.com/managed-upgrade/managed-upgrade-operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /licenses /licenses
COPY --from=build /src/LICENSE /licenses/LICENSE
COPY --from=build /out/ /
USER 65532:65532
ENTRYPOINT ["/operator"]
