# The image of feira. Two ways lead to it, with the same result:
#
#   docker build .   compiles in a container (BuildKit; --platform linux/arm64 and others are cross-compiled)
#   make images      brings the compiled program along, and needs no image registry (--target prebuilt)
ARG GO_IMAGE=golang:1.26

# What both have in common. No shell, no packages, no root.
FROM scratch AS feira
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="feira" \
      org.opencontainers.image.description="An event-sourced shop to run, break and copy from" \
      org.opencontainers.image.source="https://github.com/feira-shop/feira" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
ENV FEIRA_LISTEN=0.0.0.0:8081 \
    FEIRA_LOG_FORMAT=json
EXPOSE 8081
USER 65532:65532
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 CMD ["/feira", "health"]
ENTRYPOINT ["/feira"]

# The context is the root of the image, see deployments/images/feira.
FROM feira AS prebuilt
COPY . /

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
WORKDIR /src
ARG GOPROXY
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
ARG REVISION=unknown
ARG TARGETARCH
RUN deployments/images/feira/root.sh /root-of-image "$TARGETARCH" "$VERSION" "$REVISION"

FROM feira
COPY --from=build /root-of-image /
