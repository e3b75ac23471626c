"""`lehr doctor`: whether this machine has what Lehr needs."""

from __future__ import annotations

import enum
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from lehr.base.errors import LehrError
from lehr.cli import terminal
from lehr.cli.output import output_option, show_document
from lehr.cli.stored import found_state, named_store, open_store, running, state_option
from lehr.wiring import store_place

_LEAST_FREE_BYTES = 200_000_000
_LEAST_WATCHES = 8192
_LEAST_GIT = (2, 20)


class Level(enum.StrEnum):
    """How bad a finding is."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


class Finding(msgspec.Struct, frozen=True):
    """The finding about one thing that Lehr needs."""

    name: str
    level: Level
    said: str
    fix: str = ""


@click.command(
    epilog="""
    \b
    Examples:
      lehr doctor
      lehr doctor --state /var/lib/lehr -o json

    Ends with 1 when something that Lehr cannot do without is missing.
    """
)
@output_option("text", "json", "yaml")
@state_option
def doctor(form: str, state: Path | None) -> None:
    """Check that this machine has what Lehr needs, and say how to mend what is missing."""
    folder = found_state(state)
    findings = [check() for check in MACHINE]
    if folder is None:
        findings.append(Finding("state", Level.OK, "there is none yet; `lehr run` makes it"))
    else:
        findings += [check(folder) for check in STATE]
    if form == "text":
        for finding in findings:
            _show(finding)
    else:
        show_document(form, [msgspec.to_builtins(finding) for finding in findings])
    if any(finding.level is Level.FAIL for finding in findings):
        raise click.exceptions.Exit(1)


def _show(finding: Finding) -> None:
    colour = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}[finding.level]
    print(f"{terminal.style(finding.level.ljust(4), colour)}  {finding.name.ljust(12)}  {finding.said}")
    if finding.fix:
        print(f"      {' ' * 12}  fix: {finding.fix}")


# --- the machine -------------------------------------------------------------------


def _python() -> Finding:
    return Finding("python", Level.OK, f"Python {platform.python_version()}, {sys.executable}")


def _system() -> Finding:
    said = f"{platform.system()} {platform.release()} on {platform.machine()}"
    if platform.system() != "Linux":
        return Finding("system", Level.FAIL, said, "run Lehr on Linux")
    return Finding("system", Level.OK, said)


def _git() -> Finding:
    fix = f"install git {_LEAST_GIT[0]}.{_LEAST_GIT[1]} or newer; plain directories work without it"
    path = shutil.which("git")
    if path is None:
        return Finding("git", Level.WARN, "the git command is not there", fix)
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("git", Level.WARN, f"{path} does not run: {error}", fix)
    said = done.stdout.strip()
    numbers = tuple(
        int(part) for part in said.removeprefix("git version ").split(".")[:2] if part.isdecimal()
    )
    return Finding("git", Level.OK, said) if numbers >= _LEAST_GIT else Finding("git", Level.WARN, said, fix)


def _supervisord() -> Finding:
    if importlib.util.find_spec("supervisor") is None:
        return Finding(
            "supervisord", Level.FAIL, "package supervisor is not there", "install Lehr again with pip"
        )
    return Finding("supervisord", Level.OK, "there, for lehr.Process")


def _inotify() -> Finding:
    limit = Path("/proc/sys/fs/inotify/max_user_watches")
    try:
        watches = int(limit.read_text())
    except (OSError, ValueError):
        return Finding("inotify", Level.WARN, "not there; drift of files is found at the next regular look")
    if watches < _LEAST_WATCHES:
        fix = f"sysctl fs.inotify.max_user_watches={_LEAST_WATCHES * 8}"
        return Finding("inotify", Level.WARN, f"{watches:,} watches for all programs of this user", fix)
    return Finding("inotify", Level.OK, f"{watches:,} watches")


def _time_zones() -> Finding:
    import zoneinfo

    try:
        zoneinfo.ZoneInfo("Europe/Berlin")
    except (zoneinfo.ZoneInfoNotFoundError, OSError):
        return Finding("time zones", Level.FAIL, "no data; calendars need them", "install tzdata with pip")
    return Finding("time zones", Level.OK, "there, for calendars")


def _isolation() -> Finding:
    """What the kernel keeps generators from, tested in practice."""
    from lehr.generate.sandbox.confinement import Mechanism, held_back, untried

    problems = held_back()
    holds = ", ".join(item for item in Mechanism if item not in problems) or "nothing"
    if not problems and untried():
        said = (
            f"{holds}: all hold for generators, but the list of system calls was never tried on {untried()}"
        )
        fix = "if a generator that should run is ended with GEN023, report it with the line that it names"
        return Finding("isolation", Level.WARN, said, fix)
    if not problems:
        return Finding("isolation", Level.OK, f"{holds}: all hold for generators")
    missing = "; ".join(f"no {item}: {why}" for item, why in problems.items())
    fix = "allow it to the user or the container that runs Lehr; Python's own checks stop mistakes without"
    return Finding("isolation", Level.WARN, f"for generators hold: {holds}; {missing}", fix)


MACHINE: tuple[Callable[[], Finding], ...] = (
    _python,
    _system,
    _git,
    _supervisord,
    _inotify,
    _time_zones,
    _isolation,
)
"""Checks for every machine."""

# --- the state ------------------------------------------------------------------------


def _rights(state: Path) -> Finding:
    if not state.exists() and named_store() is not None:
        return Finding("state", Level.OK, "not on this machine; its store is looked at")
    if not state.is_dir():
        return Finding(
            "state", Level.FAIL, f"there is no folder {state}", "start `lehr run`, or name it with --state"
        )
    if not os.access(state, os.R_OK | os.W_OK | os.X_OK):
        return Finding("state", Level.FAIL, f"{state} is not this user's", "ask as the user who runs Lehr")
    others = state.stat().st_mode & 0o077
    if others:
        return Finding("state", Level.WARN, f"others may look into {state}", f"chmod 700 {state}")
    return Finding("state", Level.OK, str(state))


def _store(state: Path) -> Finding:
    try:
        with open_store(state) as store:
            known = store.intent.partitions()
            for partition in known:
                store.intent.newest(partition)
                store.records.controls(partition, 0.0)
    except LehrError as error:
        return Finding("state file", Level.FAIL, f"{error.what}: {error.why}".rstrip(": "), error.fix)
    place = store_place(state, named_store())
    said = f"{place}; partitions: {', '.join(known) or 'none yet'}; `lehr store check` looks at every row"
    return Finding("state file", Level.OK, said)


def _disk(state: Path) -> Finding:
    try:
        free = shutil.disk_usage(state if state.exists() else Path.cwd()).free
    except OSError as error:
        return Finding("disk", Level.FAIL, f"{state} cannot be looked at: {error.strerror}")
    said = f"{free / 1e9:,.1f} GB free"
    if free < _LEAST_FREE_BYTES:
        return Finding("disk", Level.WARN, said, "make room: what cannot be written down is not done")
    return Finding("disk", Level.OK, said)


def _secrets(state: Path) -> Finding:
    from lehr.secrets import IDENTITY, IDENTITY_FILE, IDENTITY_NAME
    from lehr.secrets.identities import identities

    named = any(os.environ.get(name) for name in (IDENTITY, IDENTITY_FILE))
    sops = "sops is there" if shutil.which("sops") else "sops is not there"
    if not named and not (state / IDENTITY_NAME).exists():
        return Finding(
            "secrets", Level.OK, f"no private key of age; {sops}; needed where intent refers to them"
        )
    try:
        found = identities(os.environ, state)
    except LehrError as error:
        return Finding("secrets", Level.WARN, f"{error.what}: {error.why}".rstrip(": "), error.fix)
    return Finding("secrets", Level.OK, f"private keys of age: {len(found)}; {sops}")


def _running(state: Path) -> Finding:
    said = "answers at its socket" if running(state) else "is not running"
    return Finding("lehr run", Level.OK, said)


STATE: tuple[Callable[[Path], Finding], ...] = (_rights, _store, _disk, _secrets, _running)
"""Checks where there is a state."""
