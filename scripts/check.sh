#!/bin/sh
# Runs the named checks in order, and stops at the first that fails.
#
#   scripts/check.sh lint format types layers wheels tests
set -u
cd "$(dirname "$0")/.."
bin=${VENV:-.venv}/bin

one() {
    case $1 in
    lint) $bin/ruff check --quiet . ;;
    format) $bin/ruff format --quiet --check . || { echo "fix with: make format"; false; } ;;
    types) $bin/mypy --no-error-summary ;;
    layers) $bin/lint-imports --no-logo ;;
    wheels) $bin/python scripts/check_wheels.py ;;
    tests) ${MAKE:-make} test ;;
    *) echo "no such check: $1"; return 2 ;;
    esac
}

for check in "$@"; do
    if [ "$check" = tests ]; then
        one tests || { echo "FAILED: tests"; exit 1; }
    elif output=$(one "$check" 2>&1); then
        printf '%-7s ok\n' "$check"
    else
        printf '%s\n' "$output"
        echo "FAILED: $check"
        exit 1
    fi
done
