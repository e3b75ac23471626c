#!/bin/sh
# Gets a server from its Debian package, without privileges and without installing it: into build/NAME, where the
# tests that need it find it. Does nothing if there is one.
#
#     scripts/debian_package.sh etcd etcd-server
#     scripts/debian_package.sh prometheus
set -eu
cd "$(dirname "$0")/.."

name=$1 # of the program, and of its folder
package=${2:-$name}
program=build/$name/usr/bin/$name

command -v "$name" >/dev/null && exit 0
[ -x "$program" ] && exit 0
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
    echo "$name is not in PATH, and this is not Debian: install it" >&2
    exit 1
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
if ! (cd "$folder" && apt-get -q download "$package") >"$folder/log" 2>&1; then
    # Package lists may never have been fetched; only root can do that.
    [ "$(id -u)" = 0 ] && apt-get -q update >>"$folder/log" 2>&1 &&
        (cd "$folder" && apt-get -q download "$package") >>"$folder/log" 2>&1 || {
        cat "$folder/log" >&2
        exit 1
    }
fi
mkdir -p "build/$name"
dpkg-deb -x "$folder/$package"_*.deb "build/$name"
"$program" --version >&2
