"""The handshake between a host and a plugin program, as HashiCorp's go-plugin defines it.

The host sets a cookie (a variable by which a program that a person has started by hand knows that it should
not run), the protocol versions that it speaks, and a folder for sockets. The plugin listens there, and prints
one line:

    1|VERSION|unix|PATH|grpc

Source: https://github.com/hashicorp/go-plugin/blob/main/docs/internals.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from lehr.base.errors import StalledError

_CORE_VERSION = "1"
_SHOWN = 200


class Handshake(NamedTuple):
    """The agreement of host and plugin on how they talk.

    Attributes:
        cookie_name, cookie: the variable that shows a program that a host has started it, and its value.
        versions: protocol versions that the host speaks.
    """

    cookie_name: str
    cookie: str
    versions: tuple[int, ...]


def greeting(line: str, handshake: Handshake, folder: Path) -> tuple[int, str]:
    """Protocol version, and address in gRPC's notation, from the line that a plugin has printed.

    Raises:
        StalledError: it is not a handshake, or names a version or a place that is not acceptable.
    """
    core, _, rest = line.partition("|")
    version, _, rest = rest.partition("|")
    network, _, rest = rest.partition("|")
    path, _, protocol = rest.partition("|")
    if core != _CORE_VERSION or not version.isdecimal() or not protocol.startswith("grpc"):
        raise StalledError(
            "the program does not answer the handshake of plugins",
            code="PLG107",
            why=f"it has printed: {line[:_SHOWN]}",
            fix="check that the path is that of a plugin, and that it prints nothing before the handshake",
        )
    if int(version) not in handshake.versions:
        spoken = " and ".join(map(str, handshake.versions))
        raise StalledError(
            f"the plugin speaks version {version} of the protocol",
            code="PLG108",
            why=f"Lehr speaks {spoken}",
            fix="use a version of the plugin that speaks one of these",
        )
    if network != "unix" or Path(path).parent != folder:
        raise StalledError(
            "the plugin does not listen where it should",
            code="PLG109",
            why=f"it listens at {network} {path}, where others may reach it",
            fix="let it make a Unix socket in the folder PLUGIN_UNIX_SOCKET_DIR",
        )
    return int(version), f"unix:{path}"
