"""Whether a replica can be started at all, asked before anything is stopped. Blocks briefly."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from lehr.base.errors import StalledError
from lehr.plugins.process import launch, procfs
from lehr.plugins.process.render import Replica, RunAs

_IDENTITY = 1 << 6 | 1 << 7
"""CAP_SETGID and CAP_SETUID, as in <linux/capability.h>."""

_RESOURCES = 1 << 24
"""CAP_SYS_RESOURCE."""


def check_runnable(replica: Replica, inherited: Mapping[str, str]) -> None:
    """Raise unless the replica's program, directory, user and environment file exist and may be used.

    Raises:
        StalledError: one of them does not, or may not.
    """
    if not os.path.isdir(replica.directory):
        raise StalledError(
            f"the directory {replica.directory} of the process does not exist",
            code="PRO113",
            fix="create it, or change `directory`",
        )
    command = replica.command[0]
    environment = {**inherited, **_given(replica), **replica.environment}
    check_rights(replica.run_as, own_rights())
    search = environment.get("PATH", os.defpath)
    place = os.path.join(replica.directory, command) if "/" in command else command
    if shutil.which(place, path=search) is None:
        raise StalledError(
            f"the program {command} was not found or is not executable",
            code="PRO114",
            why=f"looked for it as {place}" if "/" in command else f"looked for it in PATH ({search})",
            fix="install it, or change the first word of `command`",
        )


def _given(replica: Replica) -> dict[str, str]:
    file = os.path.join(replica.directory, replica.run_as.environment_file)
    if not replica.run_as.environment_file:
        return {}
    try:
        return launch.variables(file)
    except OSError as error:
        raise StalledError(
            f"the environment file {file} cannot be read",
            code="PRO133",
            why=error.strerror or str(error),
            fix="create it, or change `environment_file`",
        ) from error
    except ValueError as error:
        raise StalledError(
            f"the environment file {file} is invalid", code="PRO134", why=str(error), fix="correct that line"
        ) from error


class Rights(NamedTuple):
    """Rights of the programs that this process starts.

    Attributes:
        user: become another user, with other groups.
        limits: raise hard limits.
    """

    user: bool
    limits: bool


def own_rights() -> Rights:
    """The rights of this process. In containers, root lacks some."""
    found = procfs.inherited_capabilities()
    if found is None:  # a system without capabilities
        return Rights(os.geteuid() == 0, os.geteuid() == 0)
    return Rights(found & _IDENTITY == _IDENTITY, found & _RESOURCES != 0)


def check_rights(run_as: RunAs, rights: Rights) -> None:
    """Raise unless a program that this process starts can take on `run_as`.

    Raises:
        StalledError: user or group does not exist, or the program may not.
    """
    try:
        uid, gid, _, _ = launch.identity(msgspec.to_builtins(run_as))
    except LookupError as error:
        raise StalledError(
            str(error), code="PRO135", fix="create it, or change `user` and `user_group`"
        ) from error
    euid = os.geteuid()
    field = "" if rights.user else "user" if uid != euid else "user_group" if gid != os.getegid() else ""
    if field:
        raise StalledError(
            f"`{field}` {getattr(run_as, field)} needs a Lehr that runs as root",
            code="PRO136",
            why=f"it runs with uid {euid} and gid {os.getegid()}, without CAP_SETUID and CAP_SETGID",
            fix=f"run Lehr as root, or delete `{field}`",
        )
    for name, wanted, hard in () if rights.limits else _raised(run_as):
        raise StalledError(
            f"limits.{name} of {wanted} needs a Lehr that runs as root with CAP_SYS_RESOURCE",
            code="PRO137",
            why=f"its own hard limit is {hard}, which it may not raise",
            fix=f"give Lehr that capability, or declare at most {hard}",
        )


def _raised(run_as: RunAs) -> Iterator[tuple[str, str, int]]:
    """Limits above the hard ones of this process: name, wanted, and hard."""
    for name, wanted in msgspec.to_builtins(run_as.limits).items():
        _, hard = resource.getrlimit(getattr(resource, launch.RESOURCES[name]))
        if hard != resource.RLIM_INFINITY and (wanted == "unlimited" or wanted > hard):
            yield name, str(wanted), hard
