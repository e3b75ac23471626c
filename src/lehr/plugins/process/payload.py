"""The payload of `lehr.Process`, and its checks before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from lehr.model.secret import Secret
from lehr.model.types import AssetType, Followed

PROCESS = "lehr.Process"

RESERVED = "LEHR_"
"""Environment variables with this prefix are Lehr's own."""

_GROUP = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?")
_LOOPBACK = re.compile(r"http://(127(\.\d{1,3}){3}|localhost|\[::1\])(:(\d+|\{[^{}]*\}))?(/.*)?")
_VARIABLE = re.compile(r"[^=\0]+")
PLACEHOLDER = re.compile(r"\{(\{?)(port|port\.[A-Za-z0-9_-]+|replica|directory)\}(\}?)")

Argument = Annotated[str, msgspec.Meta(max_length=32_768, pattern=r"^[^\0]*$")]
Signal = Literal["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH"]
StopSignal = Literal["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGWINCH"]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@$-]*$", max_length=64)]
Limit = Annotated[int, msgspec.Meta(ge=0, le=2**62)] | Literal["unlimited"]


class Port(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A port that each replica listens on: replica i on `base` + i.

    Attributes:
        name: what `{port.NAME}` refers to.
        base: port of replica 0.
    """

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,63}$")]
    base: Annotated[int, msgspec.Meta(ge=1, le=65_535)]


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Resource limits of each process of a replica, as in setrlimit(2): soft and hard.

    Attributes:
        address_space: bytes of virtual memory, of which many programs reserve much more than they use.
        core: bytes of a core dump.
        cpu: seconds of processor time.
        data: bytes of heap and private memory.
        fsize: bytes of a file that is written.
        memlock: bytes locked in memory.
        nofile: open files.
        nproc: processes and threads of the same user.
        stack: bytes of the stack.
    """

    address_space: Limit | None = None
    core: Limit | None = None
    cpu: Limit | None = None
    data: Limit | None = None
    fsize: Limit | None = None
    memlock: Limit | None = None
    nofile: Limit | None = None
    nproc: Limit | None = None
    stack: Limit | None = None


class Process(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A long-running program, kept running in a number of replicas.

    In `command`, `reload_command`, the values of `environment`, `environment_file` and `health_url`, `{port}`
    (or `{port.NAME}`), `{replica}` and `{directory}` are replaced with the replica's own; `{{port}}` becomes
    `{port}`, and any other brace is kept.

    Attributes:
        command: program and arguments; no shell reads them.
        environment: variables in addition to PATH, HOME, USER, LOGNAME, SHELL, LANG, LC_ALL, TZ and TMPDIR,
            which come from Lehr's own environment. A value may be a reference to a secret; when the reference
            changes, or the encrypted file that it names, the replicas are rolled.
        replicas: how many run.
        ports: ports that replicas listen on.
        health_url: a replica is healthy while GET answers 200. Without it, a replica is healthy
            once it has been up for a second.
        health_any_host: allow a `health_url` beyond the loopback interface.
        health_timeout_seconds: how long a replica may fail its probes before it counts as
            unhealthy, and is restarted.
        start_timeout_seconds: how long a replica may take to become healthy after its start.
        stop_signal: sent to a replica's process group to stop it.
        stop_timeout_seconds: from `stop_signal` to SIGKILL.
        directory: working directory, absolute or relative to the base directory of the deployment,
            which it is by default; it must exist.
        environment_file: path of a file of variables, one `NAME=value` a line; relative to `directory`. It is
            read at each start. Variables in `environment` override it.
        user: that the program runs as, a name or number; by default the one that Lehr runs as. Any other
            needs a Lehr that runs as root. HOME, USER, LOGNAME and SHELL follow the user.
        user_group: the program's primary group, a name or number; by default that of `user`.
        umask: 3 or 4 octal digits.
        limits: resource limits. Raising a hard limit needs a Lehr that runs as root.
        group: name of the supervisord that runs it; by default that of the partition.
        restart_on: ids of assets whose change rolls the replicas (for example a configuration file). They are
            dependencies: they are pushed first. One that is turned down is removed first, and then the
            replicas are rolled.
        reload_on: ids of assets whose change reloads the replicas, which keep running. Otherwise like
            `restart_on`.
        reload_signal: sent to a replica's process to reload it; SIGHUP by default.
        reload_command: program and arguments, run instead of a signal, with the replica's environment and
            directory, and the pid of its process in MAINPID. The push fails if it does not exit with 0.
        version: a name for this content. A change rolls the replicas.
    """

    command: Annotated[list[Argument], msgspec.Meta(min_length=1)]
    environment: dict[str, Argument | Secret] = {}
    replicas: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 1
    ports: list[Port] = []
    health_url: str = ""
    health_any_host: bool = False
    health_timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=20)] = 3.0
    start_timeout_seconds: Seconds = 30.0
    stop_signal: StopSignal = "SIGTERM"
    stop_timeout_seconds: Seconds = 10.0
    directory: Argument = ""
    environment_file: Argument = ""
    user: Name | None = None
    user_group: Name | None = None
    umask: Annotated[str, msgspec.Meta(pattern="^[0-7]{3,4}$")] | None = None
    limits: Limits = Limits()
    group: str = ""
    restart_on: list[Followed] = []
    reload_on: list[Followed] = []
    reload_signal: Signal | None = None
    reload_command: list[Argument] = []
    version: str = ""

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ValueError(problem)

    def _problems(self) -> Iterator[str]:
        if not self.command[0]:
            yield "`command` starts with an empty string; name a program"
        if not _GROUP.fullmatch(self.group):
            yield "`group` must have 1 to 63 lower-case letters, digits and inner hyphens"
        for name in self.environment:
            if not _VARIABLE.fullmatch(name):
                yield f"`environment` has {name!r}, which is not a valid variable name"
            if name.startswith(RESERVED):
                yield f"`environment` sets {name}; names that start with {RESERVED} are reserved"
        if self.health_url and not self.health_any_host and not _LOOPBACK.fullmatch(self.health_url):
            yield (
                "`health_url` must be http:// on a loopback address (http://127.0.0.1:{port}/healthz), "
                "or set `health_any_host: true`"
            )
        if self.health_url and not self.health_url.startswith("http://"):
            yield "`health_url` must start with http://"
        yield from self._reload_problems()
        yield from self._port_problems()
        yield from self._placeholder_problems()

    def _reload_problems(self) -> Iterator[str]:
        for name in sorted(set(self.reload_on).intersection(self.restart_on)):
            yield f"`restart_on` and `reload_on` both name {name}; a change of it either restarts or reloads"
        if self.reload_signal and self.reload_command:
            yield "`reload_signal` and `reload_command` exclude each other; keep one"
        if self.reload_command and not self.reload_command[0]:
            yield "`reload_command` starts with an empty string; name a program"
        if (self.reload_signal or self.reload_command) and not self.reload_on:
            yield "nothing is ever reloaded: name the assets whose change reloads the replicas in `reload_on`"

    def _port_problems(self) -> Iterator[str]:
        names: set[str] = set()
        owner: dict[int, str] = {}
        for port in self.ports:
            if port.name in names:
                yield f"`ports` names {port.name} twice"
            names.add(port.name)
            for number in range(port.base, port.base + self.replicas):
                if number > 65_535:
                    yield f"port {port.name} of replica {number - port.base} would be {number}, above 65535"
                    return
                if number in owner:
                    yield f"ports {owner[number]} and {port.name} both include {number}"
                    return
                owner[number] = port.name

    def _placeholder_problems(self) -> Iterator[str]:
        known = {"replica", "directory"} | {f"port.{port.name}" for port in self.ports}
        if len(self.ports) == 1:
            known.add("port")
        plain = [value for value in self.environment.values() if isinstance(value, str)]
        for text in (*self.command, *self.reload_command, *plain, self.environment_file, self.health_url):
            for match in PLACEHOLDER.finditer(text):
                name = match.group(2)
                if name not in known and not (match.group(1) and match.group(3)):
                    ports = ", ".join(f"{{port.{port.name}}}" for port in self.ports) or "none is declared"
                    yield f"{{{name}}} does not name a declared port; `ports`: {ports}"


def _claims(process: Process) -> Iterator[str]:
    for port in process.ports:
        yield from (f"port:{number}" for number in range(port.base, port.base + process.replicas))


TYPES = (AssetType(PROCESS, Process, claims=_claims),)
