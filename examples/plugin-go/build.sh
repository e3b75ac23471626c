#!/bin/sh
# Builds the plugin: ./zones, or the file that is named. With a Go module proxy:
#
#     go mod tidy && go build
#
# does the same. This script needs none, but Debian's (or Ubuntu's) packages:
#
#     apt-get install golang-go golang-google-grpc-dev golang-github-golang-protobuf-1-5-dev
set -eu
cd "$(dirname "$0")"
output=${1:-zones}
packages=/usr/share/gocode
[ -d "$packages/src/google.golang.org/grpc" ] || {
    echo "there is no $packages/src/google.golang.org/grpc: install golang-google-grpc-dev, or use go mod" >&2
    exit 1
}
path=$(mktemp -d)
trap 'rm -rf "$path"' EXIT
mkdir -p "$path/src/lehr.dev"
ln -s "$PWD/lehrplugin" "$path/src/lehr.dev/plugin"
command -v gcc >/dev/null || export CGO_ENABLED=0 # more has to be compiled then
GO111MODULE=off GOPATH="$path:$packages" go build -o "$output" .
