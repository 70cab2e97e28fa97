# The command alone: static, without a shell, as a user without rights.
#
#	docker build -t leasehold .
#	docker run --rm -e AWS_REGION -e AWS_ACCESS_KEY_ID -e AWS_SECRET_ACCESS_KEY leasehold ls -t locks
#
# To run a CMD of yours under a lock, copy the command into your image:
#
#	COPY --from=leasehold /usr/local/bin/leasehold /usr/local/bin/
# The Go of a release: release/go-version.
FROM golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /leasehold ./cmd/leasehold

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /leasehold /usr/local/bin/leasehold
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/leasehold"]
