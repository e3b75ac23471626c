"""The git command: fetches, pushes, makes mirrors, and updates checked-out work trees.

Everything else reads objects directly.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from lehr.base.errors import LehrError, StalledError, TransientError

_PROTOCOLS = "file:git:http:https:ssh"  # not `ext`, which would run any command in a URL
_KEPT_VARIABLES = (
    "GIT_SSH",
    "GIT_SSL_",
    "GIT_ASKPASS",
    "GIT_PROXY",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
)
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.bigFileThreshold=10m",  # larger than any file that is read: copied without being held in memory
    "core.fsync=objects,reference",
    "core.fsyncMethod=batch",
    "gc.pruneExpire=never",
    "fetch.recurseSubmodules=false",
    "fetch.prune=false",
)
_PASSWORD = re.compile(r"(?<=://)[^/\s]+@")
_MAX_OUTPUT = 500
_running: set[subprocess.Popen[bytes]] = set()


def run_git(
    arguments: list[str],
    *,
    timeout: float,
    location: str,
    feed: bytes = b"",
    variables: Mapping[str, str] | None = None,
) -> bytes:
    """Run git, without a terminal and without the caller's own git environment.

    Args:
        timeout: seconds after which git and all its child processes are killed.
        location: the repository concerned, for messages.
        feed: input on stdin.
        variables: additional environment variables for this run.

    Returns:
        Its output on stdout.

    Raises:
        TransientError: it failed or timed out in a way that may go away.
        StalledError: it failed in a way that a person must fix.
    """
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    try:
        process = subprocess.Popen(
            ["git", *settings, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**_environment(os.environ), **(variables or {})},
            start_new_session=True,  # no terminal to prompt on, and one group to kill
        )
    except FileNotFoundError as err:
        raise StalledError(
            "the git command is not installed",
            code="SRC106",
            why="Lehr uses it to fetch and push repositories",
            fix="install git and put it on the PATH",
        ) from err
    _running.add(process)
    try:
        stdout, stderr = process.communicate(feed, timeout=timeout)
    except BaseException as err:
        _kill(process)
        if not isinstance(err, subprocess.TimeoutExpired):
            raise
        raise TransientError(
            f"git did not finish within {timeout:g} s for {public(location)}",
            code="SRC107",
            why="the repository or the network is slow or hangs",
            fix="check whether `git fetch` works on this machine",
        ) from err
    finally:
        _running.discard(process)
    if process.returncode:
        raise _failure(stderr.decode(errors="replace"), location)
    return stdout


def interrupt() -> None:
    """Make all running git commands fail, from another thread: shutdown must not wait for one that hangs."""
    for process in tuple(_running):
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def public(location: str) -> str:
    """`location` without a password or token in its URL."""
    return _PASSWORD.sub("", location)


def ownership_problem(path: Path | str) -> StalledError:
    """The repository belongs to another user, so git refuses to read its configuration."""
    return StalledError(
        f"the repository {path} belongs to another user",
        code="SRC108",
        why="git reads another user's repository only if it is listed as safe",
        fix=f"git config --global --add safe.directory {path}",
    )


def _environment(caller: Mapping[str, str]) -> dict[str, str]:
    """The environment for git, without a work tree or index set by a surrounding hook."""
    kept = {
        name: value
        for name, value in caller.items()
        if not name.startswith("GIT_") or name.startswith(_KEPT_VARIABLES)
    }
    return kept | {
        "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
        "GIT_TERMINAL_PROMPT": "0",
        "SSH_ASKPASS_REQUIRE": "never",
        "LC_ALL": "C",
    }


def _kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _failure(stderr: str, location: str) -> LehrError:
    """The error for git's message."""
    where = public(location)
    why = "; ".join(public(stderr).split("\n")).strip("; ")[-_MAX_OUTPUT:] or "git gave no details"
    if "dubious ownership" in stderr:
        return ownership_problem(where)
    if "couldn't find remote ref" in stderr:
        return StalledError(
            f"{where} has no such branch or tag, or no commit yet",
            code="SRC109",
            why=why,
            fix="push it, or name a different one",
        )
    if "not our ref" in stderr or "unadvertised object" in stderr:
        return StalledError(
            f"{where} does not serve that commit",
            code="SRC110",
            why=why,
            fix="check that it is on a branch there; or name the branch or a tag",
        )
    if "not allowed" in stderr and "transport" in stderr:
        return StalledError(
            f"{where} uses a protocol that is not allowed",
            code="SRC111",
            why=why,
            fix=f"use one of {_PROTOCOLS.replace(':', ', ')}",
        )
    if "mismatched algorithms" in stderr:
        return StalledError(
            f"{where} uses SHA-256 object names",
            code="SRC112",
            why="Lehr cannot read them yet",
            fix="use a SHA-1 repository",
        )
    if any(text in stderr for text in ("Authentication failed", "could not read", "Permission denied")):
        return StalledError(
            f"git is not allowed to read {where}",
            code="SRC113",
            why=why,
            fix="give this user a key or a credential helper, or access to the files",
        )
    if "No space left" in stderr:
        return TransientError(
            "the disk is full", code="SRC114", why=why, fix="free space in the state directory"
        )
    return TransientError(
        f"{where} could not be fetched",
        code="SRC115",
        why=why,
        fix="check whether `git fetch` works on this machine",
    )
