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


class CheckResult(msgspec.Struct, frozen=True):
    """The result of one check."""

    name: str
    level: Level
    detail: str
    fix: str = ""


Opening = Callable[[], AbstractContextManager[CheckableStore]]


def of_machine() -> list[CheckResult]:
    """Findings about every machine."""
    return [_python(), _system(), _git(), _supervisord(), _inotify(), _time_zones(), _isolation()]


def of_state(
    state: Path, opening: Opening, place: Callable[[], str], elsewhere: bool, running: Callable[[Path], bool]
) -> list[CheckResult]:
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
        CheckResult("lehr run", Level.OK, answers),
    ]


# --- the machine -------------------------------------------------------------------


def _python() -> CheckResult:
    return CheckResult("python", Level.OK, f"Python {platform.python_version()}, {sys.executable}")


def _system() -> CheckResult:
    detail = f"{platform.system()} {platform.release()} on {platform.machine()}"
    if platform.system() != "Linux":
        return CheckResult("system", Level.FAIL, detail, "run Lehr on Linux")
    return CheckResult("system", Level.OK, detail)


def _git() -> CheckResult:
    fix = f"install git {_LEAST_GIT[0]}.{_LEAST_GIT[1]} or newer; plain directories work without git"
    path = shutil.which("git")
    if path is None:
        return CheckResult("git", Level.WARN, "git is not installed", fix)
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return CheckResult("git", Level.WARN, f"{path} does not run: {error}", fix)
    detail = done.stdout.strip()
    numbers = tuple(
        int(part) for part in detail.removeprefix("git version ").split(".")[:2] if part.isdecimal()
    )
    return (
        CheckResult("git", Level.OK, detail)
        if numbers >= _LEAST_GIT
        else CheckResult("git", Level.WARN, detail, fix)
    )


def _supervisord() -> CheckResult:
    if importlib.util.find_spec("supervisor") is None:
        return CheckResult(
            "supervisord", Level.FAIL, "package supervisor is not installed", "reinstall Lehr with pip"
        )
    return CheckResult("supervisord", Level.OK, "installed; runs lehr.Process assets")


def _inotify() -> CheckResult:
    limit = Path("/proc/sys/fs/inotify/max_user_watches")
    try:
        watches = int(limit.read_text())
    except (OSError, ValueError):
        return CheckResult(
            "inotify", Level.WARN, "not available; file drift is only found by the regular checks"
        )
    if watches < _LEAST_WATCHES:
        fix = f"sysctl fs.inotify.max_user_watches={_LEAST_WATCHES * 8}"
        return CheckResult(
            "inotify", Level.WARN, f"only {watches:,} watches for all programs of this user", fix
        )
    return CheckResult("inotify", Level.OK, f"{watches:,} watches")


def _time_zones() -> CheckResult:
    try:
        zoneinfo.ZoneInfo("Europe/Berlin")
    except (zoneinfo.ZoneInfoNotFoundError, OSError):
        return CheckResult(
            "time zones", Level.FAIL, "no time zone data; calendars need it", "install tzdata with pip"
        )
    return CheckResult("time zones", Level.OK, "installed; used by calendars")


def _isolation() -> CheckResult:
    """Which kernel mechanisms confine generators, tested in practice."""
    problems = inactive_mechanisms()
    holds = ", ".join(item for item in Mechanism if item not in problems) or "nothing"
    if not problems and untried():
        detail = (
            f"generators are confined by {holds}, but the list of system calls is untested on {untried()}"
        )
        fix = "if a valid generator is killed with GEN023, report it with the line that it names"
        return CheckResult("isolation", Level.WARN, detail, fix)
    if not problems:
        return CheckResult("isolation", Level.OK, f"generators are confined by {holds}")
    missing = "; ".join(f"no {item}: {why}" for item, why in problems.items())
    fix = "allow it for the user or container that runs Lehr; until then only checks in Python catch mistakes"
    return CheckResult("isolation", Level.WARN, f"generators are only confined by {holds}; {missing}", fix)


# --- the state ------------------------------------------------------------------------


def _rights(state: Path, *, elsewhere: bool) -> CheckResult:
    if elsewhere and not state.exists():
        return CheckResult("state", Level.OK, "not on this machine; only its store is checked")
    if not state.is_dir():
        return CheckResult(
            "state",
            Level.FAIL,
            f"folder {state} does not exist",
            "start `lehr run`, or name the folder with --state",
        )
    if not os.access(state, os.R_OK | os.W_OK | os.X_OK):
        return CheckResult(
            "state",
            Level.FAIL,
            f"{state} is not accessible to this user",
            "run this as the user who runs Lehr",
        )
    others = state.stat().st_mode & 0o077
    if others:
        return CheckResult("state", Level.WARN, f"other users can access {state}", f"chmod 700 {state}")
    return CheckResult("state", Level.OK, str(state))


def _store(opening: Opening, place: Callable[[], str]) -> CheckResult:
    try:
        with opening() as store:
            known = store.intent.partitions()
            for partition in known:
                store.intent.newest(partition)
                store.records.controls(partition, 0.0)
    except LehrError as error:
        return CheckResult("state file", Level.FAIL, f"{error.what}: {error.why}".rstrip(": "), error.fix)
    detail = f"{place()}; partitions: {', '.join(known) or 'none yet'}; `lehr store check` checks every row"
    return CheckResult("state file", Level.OK, detail)


def _disk(state: Path) -> CheckResult:
    try:
        free = shutil.disk_usage(state if state.exists() else Path.cwd()).free
    except OSError as error:
        return CheckResult("disk", Level.FAIL, f"{state} cannot be checked: {error.strerror}")
    detail = f"{free / 1e9:,.1f} GB free"
    if free < _LEAST_FREE_BYTES:
        return CheckResult(
            "disk", Level.WARN, detail, "free some space: Lehr only acts on decisions that it can record"
        )
    return CheckResult("disk", Level.OK, detail)


def _secrets(state: Path) -> CheckResult:
    named = any(os.environ.get(name) for name in (IDENTITY, IDENTITY_FILE))
    sops = "sops is installed" if shutil.which("sops") else "sops is not installed"
    if not named and not (state / IDENTITY_NAME).exists():
        return CheckResult(
            "secrets",
            Level.OK,
            f"no age private key; {sops}; only needed if intent refers to encrypted files",
        )
    try:
        found = identities(os.environ, state)
    except LehrError as error:
        return CheckResult("secrets", Level.WARN, f"{error.what}: {error.why}".rstrip(": "), error.fix)
    return CheckResult("secrets", Level.OK, f"age private keys: {len(found)}; {sops}")
