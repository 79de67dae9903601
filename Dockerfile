# The image of the operator, of the Update Status Controller, and of the hub of fleets: static programs,
# no shell, not root.
FROM golang:1.26 AS build
ARG VERSION=unknown
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd/hub cmd/hub
COPY cmd/operator cmd/operator
COPY cmd/update-status-controller cmd/update-status-controller
COPY pkg pkg
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X github.com/managed-upgrade/managed-upgrade-operator/pkg/manager.version=${VERSION}" -o / ./cmd/hub ./cmd/operator ./cmd/update-status-controller

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /hub /operator /update-status-controller /
USER 65532:65532
ENTRYPOINT ["/operator"]
