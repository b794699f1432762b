# One image for hyperfleet-api, fleetd and fleetctl, in two ways (docs/operations/containers.md):
#   docker build --tag hyperfleet .                                       builds the programs from source
#   docker build --tag hyperfleet --target packed --file Dockerfile DIR   packs programs that are in DIR/amd64, DIR/arm64
# `make image` does the second.

ARG RUST_IMAGE=docker.io/library/rust:1.95.0-slim-bookworm@sha256:d7482085ff5b415f84dba5647ae71606650bdef00db7aeb69f4b3d170c3e4082
# glibc, libgcc, authorities of TLS, no shell. Its Debian must be no older than the one that the programs are built on.
ARG BASE_IMAGE=gcr.io/distroless/cc-debian12:nonroot@sha256:9dac0a79194e45a7da0158a9c6da57b217585af0786db3845d1f0ec1a0dd182f

FROM ${BASE_IMAGE} AS runtime
COPY LICENSE /licenses/LICENSE
WORKDIR /app
ENV PATH=/app:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# The numbers, so that Kubernetes can see that it is not root.
USER 65532:65532
# API, health, metrics.
EXPOSE 8000 8080 9090
# Liveness, of hyperfleet-api: the settings of the container say where its health listener is.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/app/hyperfleet-api", "healthcheck"]
ENTRYPOINT ["/app/hyperfleet-api"]
CMD ["serve"]
ARG BASE_IMAGE
ARG VERSION=unknown
ARG COMMIT=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.title="hyperfleet" \
      org.opencontainers.image.description="Control plane for fleets of clusters: hyperfleet-api, fleetd, fleetctl" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="${BASE_IMAGE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}" \
      org.opencontainers.image.created="${CREATED}"

# The builder names the architecture as Docker does: amd64, arm64.
FROM runtime AS packed
ARG TARGETARCH
# The folder, because links within a folder stay links: hyperfleet-fleet-adapter is one to hyperfleet-api.
COPY ${TARGETARCH}/ /app/

FROM ${RUST_IMAGE} AS build
WORKDIR /src
COPY . .
ARG COMMIT=unknown
ARG CREATED=unknown
RUN HYPERFLEET_BUILD_COMMIT="$COMMIT" HYPERFLEET_BUILD_TIME="$CREATED" scripts/build-dist \
    && mkdir /programs \
    && cp target/dist/hyperfleet-api target/dist/fleetd target/dist/fleetctl /programs/ \
    && ln -s hyperfleet-api /programs/hyperfleet-fleet-adapter

# Last, so that it is what a build without --target makes.
FROM runtime AS built
COPY --from=build /programs/ /app/
