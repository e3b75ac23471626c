#!/bin/sh
# Makes .venv (or the directory that VENV names) ready, or does nothing if it is.
#
#   scripts/environment.sh run    what `lehr` needs
#   scripts/environment.sh demo   that, and the servers that its demo plays with
#   scripts/environment.sh dev    that, and what its tests and checks need
#
# Needs python3 (3.11 or newer) with venv, and a package index that pip is configured for.
# The environment is made new when its Python is gone or the directory has moved, and brought
# up to date in place when a lock file or the package's metadata has changed.
set -eu

kind=$1
root=$(cd "$(dirname "$0")/.." && pwd)
venv=$root/${VENV:-.venv}
case $kind in
run) lock=requirements.lock ;;
demo) lock=requirements-demo.lock ;;
dev) lock=requirements-dev.lock ;;
*) echo "usage: $0 run|demo|dev" >&2; exit 2 ;;
esac

say() { printf '%s\n' "$*" >&2; }

find_python() {
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    say "Lehr needs Python 3.11 or newer; here python3 is $(python3 --version 2>&1 || true)."
    say "Install a newer one, and if it is not called python3, name it: make ... PYTHON=/path/to/python3.13"
    return 1
}

create() {
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        say "$python cannot make virtual environments: its modules venv and ensurepip are missing."
        say "Install them (Debian, Ubuntu: apt-get install python3-venv) and try again."
        return 1
    fi
    "$python" -m venv --clear "$venv"
}

# Digest of everything that the environment is made from. The tools' settings, from [tool.pytest on, do not count.
wanted() {
    (cd "$root" && cat "$lock" scripts/environment.sh && sed '/^\[tool\.pytest/,$d' pyproject.toml) | cksum
}

# Scripts name their interpreter by its whole path: an environment that was moved is of no use.
usable() {
    "$venv/bin/python" -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null &&
        head -n 2 "$venv/bin/pip" 2>/dev/null | grep -qF "$venv/bin/python"
}

ready() {
    [ "$(cat "$venv/.ready-$kind" 2>/dev/null)" = "$(wanted)" ] && [ -x "$venv/bin/lehr" ]
}

usable && ready && exit 0

command -v git >/dev/null || { say "git is not in PATH; Lehr reads intent from git. Install git."; exit 1; }
usable || create
say "Preparing ${VENV:-.venv} with $("$venv/bin/python" --version) ..."
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
cd "$root"
log=$venv/install.log
if ! { "$venv/bin/python" -m pip install --only-binary=:all: --require-hashes -r "$lock" &&
    "$venv/bin/python" -m pip install --no-deps -e .; } >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    say "The packages of $lock could not be installed (all of it: $log)."
    say "Check that pip reaches a package index: $venv/bin/python -m pip download --no-deps -d /tmp click"
    exit 1
fi
wanted >"$venv/.ready-$kind"
# Each kind has everything that the ones before it have.
[ "$kind" != dev ] || (lock=requirements-demo.lock && wanted >"$venv/.ready-demo")
[ "$kind" = run ] || (lock=requirements.lock && wanted >"$venv/.ready-run")
