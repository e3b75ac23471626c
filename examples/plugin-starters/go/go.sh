#!/bin/sh
# Runs `go` for this plugin:
#
#     ./go.sh build -o line-plugin .
#     ./go.sh test . ./lehrplugin
#
# Where the packages of Debian or Ubuntu are installed, it uses those, and needs no network:
#
#     apt-get install gcc golang-go golang-google-grpc-dev golang-github-golang-protobuf-1-5-dev
#
# Elsewhere the Go command downloads modules.
set -eu
cd "$(dirname "$0")"
packages=/usr/share/gocode
if [ ! -d "$packages/src/google.golang.org/grpc" ]; then
    [ -f go.sum ] || go mod tidy
    exec go "$@"
fi
path=$(mktemp -d)
trap 'rm -rf "$path"' EXIT
mkdir -p "$path/src/lehr.dev"
ln -s "$PWD/lehrplugin" "$path/src/lehr.dev/plugin"
command -v gcc >/dev/null || export CGO_ENABLED=0 # more has to be compiled then
GO111MODULE=off GOPATH="$path:$packages" go "$@"
