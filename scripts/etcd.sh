#!/bin/sh
# Gets etcd from its Debian package, without privileges and without installing it: into build/etcd, where the
# tests of examples/etcd-operator find it. Does nothing if there is one.
set -eu
cd "$(dirname "$0")/.."

command -v etcd >/dev/null && exit 0
[ -x build/etcd/usr/bin/etcd ] && exit 0
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
    echo "etcd is not in PATH, and this is no Debian: install it" >&2
    exit 1
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
if ! (cd "$folder" && apt-get -q download etcd-server) >"$folder/log" 2>&1; then
    # Package lists may never have been fetched; only root can do that.
    [ "$(id -u)" = 0 ] && apt-get -q update >>"$folder/log" 2>&1 &&
        (cd "$folder" && apt-get -q download etcd-server) >>"$folder/log" 2>&1 || {
        cat "$folder/log" >&2
        exit 1
    }
fi
mkdir -p build/etcd
dpkg-deb -x "$folder"/etcd-server_*.deb build/etcd
build/etcd/usr/bin/etcd --version >&2
