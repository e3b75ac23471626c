"""Whether this machine has what Lehr needs.

In: the machine, a state folder and its store. Out: findings.
"""

from __future__ import annotations

import enum
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import zoneinfo
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from lehr.base.errors import LehrError
from lehr.generate.sandbox.confinement import Mechanism, inactive_mechanisms, untried
from lehr.sdk.store import CheckableStore
from lehr.secrets import IDENTITY, IDENTITY_FILE, IDENTITY_NAME
from lehr.secrets.identities import identities

_LEAST_FREE_BYTES = 200_000_000
_LEAST_WATCHES = 8192
_LEAST_GIT = (2, 20)


class Level(enum.StrEnum):
    """Severity of a finding."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


class Finding(msgspec.Struct, frozen=True):
    """The result of one check."""

    name: str
    level: Level
    said: str
    fix: str = ""


Opening = Callable[[], AbstractContextManager[CheckableStore]]


def of_machine() -> list[Finding]:
    """Findings about every machine."""
    return [_python(), _system(), _git(), _supervisord(), _inotify(), _time_zones(), _isolation()]


def of_state(
    state: Path, opening: Opening, place: Callable[[], str], elsewhere: bool, running: Callable[[Path], bool]
) -> list[Finding]:
    """Findings about a state folder.

    Args:
        opening: opens its store for reading.
        place: where that is, for messages.
        elsewhere: the store was named, so the folder need not be on this machine.
        running: whether a `lehr run` answers for the state.
    """
    answers = "active" if running(state) else "not active"
    return [
        _rights(state, elsewhere=elsewhere),
        _store(opening, place),
        _disk(state),
        _secrets(state),
        Finding("lehr run", Level.OK, answers),
    ]


# --- the machine -------------------------------------------------------------------


def _python() -> Finding:
    return Finding("python", Level.OK, f"Python {platform.python_version()}, {sys.executable}")


def _system() -> Finding:
    said = f"{platform.system()} {platform.release()} on {platform.machine()}"
    if platform.system() != "Linux":
        return Finding("system", Level.FAIL, said, "run Lehr on Linux")
    return Finding("system", Level.OK, said)


def _git() -> Finding:
    fix = f"install git {_LEAST_GIT[0]}.{_LEAST_GIT[1]} or newer; plain directories work without git"
    path = shutil.which("git")
    if path is None:
        return Finding("git", Level.WARN, "git is not installed", fix)
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
            "supervisord", Level.FAIL, "package supervisor is not installed", "reinstall Lehr with pip"
        )
    return Finding("supervisord", Level.OK, "installed; runs lehr.Process assets")


def _inotify() -> Finding:
    limit = Path("/proc/sys/fs/inotify/max_user_watches")
    try:
        watches = int(limit.read_text())
    except (OSError, ValueError):
        return Finding("inotify", Level.WARN, "not available; file drift is only found by the regular checks")
    if watches < _LEAST_WATCHES:
        fix = f"sysctl fs.inotify.max_user_watches={_LEAST_WATCHES * 8}"
        return Finding("inotify", Level.WARN, f"only {watches:,} watches for all programs of this user", fix)
    return Finding("inotify", Level.OK, f"{watches:,} watches")


def _time_zones() -> Finding:
    try:
        zoneinfo.ZoneInfo("Europe/Berlin")
    except (zoneinfo.ZoneInfoNotFoundError, OSError):
        return Finding(
            "time zones", Level.FAIL, "no time zone data; calendars need it", "install tzdata with pip"
        )
    return Finding("time zones", Level.OK, "installed; used by calendars")


def _isolation() -> Finding:
    """Which kernel mechanisms confine generators, tested in practice."""
    problems = inactive_mechanisms()
    holds = ", ".join(item for item in Mechanism if item not in problems) or "nothing"
    if not problems and untried():
        said = f"generators are confined by {holds}, but the list of system calls is untested on {untried()}"
        fix = "if a valid generator is killed with GEN023, report it with the line that it names"
        return Finding("isolation", Level.WARN, said, fix)
    if not problems:
        return Finding("isolation", Level.OK, f"generators are confined by {holds}")
    missing = "; ".join(f"no {item}: {why}" for item, why in problems.items())
    fix = "allow it for the user or container that runs Lehr; until then only checks in Python catch mistakes"
    return Finding("isolation", Level.WARN, f"generators are only confined by {holds}; {missing}", fix)


# --- the state ------------------------------------------------------------------------


def _rights(state: Path, *, elsewhere: bool) -> Finding:
    if elsewhere and not state.exists():
        return Finding("state", Level.OK, "not on this machine; only its store is checked")
    if not state.is_dir():
        return Finding(
            "state",
            Level.FAIL,
            f"folder {state} does not exist",
            "start `lehr run`, or name the folder with --state",
        )
    if not os.access(state, os.R_OK | os.W_OK | os.X_OK):
        return Finding(
            "state",
            Level.FAIL,
            f"{state} is not accessible to this user",
            "run this as the user who runs Lehr",
        )
    others = state.stat().st_mode & 0o077
    if others:
        return Finding("state", Level.WARN, f"other users can access {state}", f"chmod 700 {state}")
    return Finding("state", Level.OK, str(state))


def _store(opening: Opening, place: Callable[[], str]) -> Finding:
    try:
        with opening() as store:
            known = store.intent.partitions()
            for partition in known:
                store.intent.newest(partition)
                store.records.controls(partition, 0.0)
    except LehrError as error:
        return Finding("state file", Level.FAIL, f"{error.what}: {error.why}".rstrip(": "), error.fix)
    said = f"{place()}; partitions: {', '.join(known) or 'none yet'}; `lehr store check` checks every row"
    return Finding("state file", Level.OK, said)


def _disk(state: Path) -> Finding:
    try:
        free = shutil.disk_usage(state if state.exists() else Path.cwd()).free
    except OSError as error:
        return Finding("disk", Level.FAIL, f"{state} cannot be checked: {error.strerror}")
    said = f"{free / 1e9:,.1f} GB free"
    if free < _LEAST_FREE_BYTES:
        return Finding(
            "disk", Level.WARN, said, "free some space: Lehr only acts on decisions that it can record"
        )
    return Finding("disk", Level.OK, said)


def _secrets(state: Path) -> Finding:
    named = any(os.environ.get(name) for name in (IDENTITY, IDENTITY_FILE))
    sops = "sops is installed" if shutil.which("sops") else "sops is not installed"
    if not named and not (state / IDENTITY_NAME).exists():
        return Finding(
            "secrets",
            Level.OK,
            f"no age private key; {sops}; only needed if intent refers to encrypted files",
        )
    try:
        found = identities(os.environ, state)
    except LehrError as error:
        return Finding("secrets", Level.WARN, f"{error.what}: {error.why}".rstrip(": "), error.fix)
    return Finding("secrets", Level.OK, f"age private keys: {len(found)}; {sops}")
