#!/bin/sh
# Installs Go and what plugins in Go need from Debian's packages, as root. Does nothing if they are there.
set -eu

[ -d /usr/share/gocode/src/google.golang.org/grpc ] && command -v go >/dev/null && exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || {
    echo "Go or its packages for gRPC are missing, and this is not Debian or not root: install them" >&2
    exit 1
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
{
    apt-get -q update
    timeout 600 apt-get -q install -y --no-install-recommends gcc libc6-dev golang-go \
        golang-google-grpc-dev golang-github-golang-protobuf-1-5-dev \
        protobuf-compiler protoc-gen-go protoc-gen-go-grpc
} >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
}
go version >&2
