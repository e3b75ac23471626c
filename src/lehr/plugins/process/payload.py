"""The payload of `lehr.Process`, and its checks before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from lehr.model.secret import Secret
from lehr.model.types import AssetType, Followed
from lehr.plugins.process.probe import Argument, Probe

PROCESS = "lehr.Process"

RESERVED = "LEHR_"
"""Environment variables with this prefix are Lehr's own."""

_GROUP = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?")
_VARIABLE = re.compile(r"[^=\0]+")
PLACEHOLDER = re.compile(r"\{(\{?)(port|port\.[A-Za-z0-9_-]+|replica|directory)\}(\}?)")

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


class Logs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Files that keep what each replica writes to stdout, and the same for stderr.

    Attributes:
        max_file_mib: size at which a new file is begun, in MiB.
        max_files: how many are kept, with the newest.
        merge_stderr: write stderr to the log of stdout, in the order in which both are written.
    """

    max_file_mib: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 5
    max_files: Annotated[int, msgspec.Meta(ge=2, le=100)] = 2
    merge_stderr: bool = False


class Process(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A long-running program, kept running in a number of replicas.

    In `command`, `reload_command`, the values of `environment`, `environment_file`, `health_url`, and in what
    `health` and `readiness` ask, `{port}` (or `{port.NAME}`), `{replica}` and `{directory}` are replaced with
    the replica's own; `{{port}}` becomes `{port}`, and any other brace is kept.

    Attributes:
        command: program and arguments; no shell reads them.
        environment: variables in addition to PATH, HOME, USER, LOGNAME, SHELL, LANG, LC_ALL, TZ and TMPDIR,
            which come from Lehr's own environment. A value may be a reference to a secret; when the reference
            changes, or the encrypted file that it names, the replicas are rolled.
        replicas: how many run.
        ports: ports that replicas listen on.
        health_url: short for a `health` that is only a `url`.
        health: a replica that fails this probe is restarted. Without it, a replica is healthy once it has
            been up for a second.
        readiness: the asset has not converged, and a push does not go on to the next replica, while a replica
            fails this probe. It is not restarted for that.
        health_any_host: allow probes beyond the loopback interface.
        health_interval_seconds: between two probes of a healthy replica.
        health_timeout_seconds: how long a replica may fail its probes before it counts as unhealthy or as
            not ready.
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
        logs: size and number of its log files.
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
    health: Probe | None = None
    readiness: Probe | None = None
    health_any_host: bool = False
    health_interval_seconds: Annotated[float, msgspec.Meta(ge=0.5, le=3600)] = 10.0
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
    logs: Logs = Logs()
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
        yield from self._probe_problems()
        yield from self._reload_problems()
        yield from self._port_problems()
        yield from self._placeholder_problems()

    @property
    def liveness(self) -> Probe | None:
        """The probe whose failure restarts a replica."""
        return Probe(url=self.health_url) if self.health_url else self.health

    def _probe_problems(self) -> Iterator[str]:
        if self.health_url and self.health is not None:
            yield "`health_url` and `health` exclude each other; keep one"
        if self.health_url and not self.health_url.startswith("http://"):
            yield "`health_url` must start with http://"
            return
        name = "health_url" if self.health_url else "health"
        for field, probe in ((name, self.liveness), ("readiness", self.readiness)):
            if probe is not None and not probe.local and not self.health_any_host:
                yield (
                    f"`{field}` must ask on a loopback address (http://127.0.0.1:{{port}}/healthz), "
                    "or set `health_any_host: true`"
                )

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
        probes = [text for probe in (self.liveness, self.readiness) if probe for text in probe.texts()]
        for text in (*self.command, *self.reload_command, *plain, self.environment_file, *probes):
            for match in PLACEHOLDER.finditer(text):
                name = match.group(2)
                if name not in known and not (match.group(1) and match.group(3)):
                    ports = ", ".join(f"{{port.{port.name}}}" for port in self.ports) or "none is declared"
                    yield f"{{{name}}} does not name a declared port; `ports`: {ports}"


def _claims(process: Process) -> Iterator[str]:
    for port in process.ports:
        yield from (f"port:{number}" for number in range(port.base, port.base + process.replicas))


TYPES = (AssetType(PROCESS, Process, claims=_claims),)
