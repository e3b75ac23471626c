"""From a payload to its replicas: what each should run, and its digest. Pure."""

from __future__ import annotations

import json
import math
import os.path
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from lehr.base.digest import Digest, digest, digest_bytes
from lehr.model.asset import AssetKey
from lehr.model.secret import Secret
from lehr.plugins.process.payload import PLACEHOLDER, Limits, Logs, Process
from lehr.plugins.process.probe import Probe
from lehr.sdk.secrets import SecretValue

_LONGEST_NAME = 180


class RunAs(msgspec.Struct, frozen=True, omit_defaults=True):
    """Settings that the launcher makes before it becomes the program; see `Process`."""

    environment_file: str = ""
    user: str | None = None
    user_group: str | None = None
    umask: str | None = None
    limits: Limits = Limits()


class Replica(msgspec.Struct, frozen=True):
    """One intended replica.

    Attributes:
        content: digest of everything that defines a running replica. Fields outside it (health, start
            limits and how it is reloaded) may change without a restart.
        loaded: digest of what it reloads when that changes; empty if there is nothing.
        secrets: further variables, by reference.
        ports: that this replica listens on.
        restart: the request to restart for which it must have been started; empty if any start will do.
        reload_signal: name of the signal that reloads it, unless there is a `reload_command`.
    """

    index: int
    group: str
    content: Digest
    command: tuple[str, ...]
    environment: dict[str, str]
    directory: str
    ports: tuple[int, ...]
    health: Probe | None
    readiness: Probe | None
    health_interval: float
    health_timeout: float
    start_timeout: float
    stop_timeout: float
    version: str
    secrets: dict[str, Secret] = {}
    loaded: str = ""
    reload_signal: str = "SIGHUP"
    reload_command: tuple[str, ...] = ()
    stop_signal: str = "SIGTERM"
    run_as: RunAs = RunAs()
    restart: str = ""
    logs: Logs = Logs()

    @property
    def probed_by_command(self) -> bool:
        """True if a probe of it starts a process."""
        return any(probe is not None and bool(probe.command) for probe in (self.health, self.readiness))


def render(
    payload: Process,
    partition: str,
    base: str,
    restart_on: Sequence[Digest],
    reload_on: Sequence[Digest] = (),
    restart: str = "",
) -> list[Replica]:
    """The replicas that `payload` asks for.

    Args:
        payload: the intent.
        partition: names the group if the payload does not.
        base: directory that a relative `directory` is relative to.
        restart_on: digests of the assets that `payload.restart_on` names, in its order.
        reload_on: the same for `payload.reload_on`.
        restart: as in `Target.restart`.
    """
    group, directory = payload.group or partition, os.path.normpath(os.path.join(base, payload.directory))
    loaded = digest(list(reload_on)) if reload_on else ""
    replicas = (_replica(payload, group, directory, restart_on, index) for index in range(payload.replicas))
    return [replace(replica, loaded=loaded, restart=restart) for replica in replicas]


def _replica(
    payload: Process, group: str, directory: str, restart_on: Sequence[Digest], index: int
) -> Replica:
    values = {"replica": str(index), "directory": directory}
    values |= {f"port.{port.name}": str(port.base + index) for port in payload.ports}
    if len(payload.ports) == 1:
        values["port"] = str(payload.ports[0].base + index)
    command = tuple(fill(text, values) for text in payload.command)
    given = payload.environment.items()
    environment = {name: fill(text, values) for name, text in given if isinstance(text, str)}
    # By reference, with the digest of the encrypted file: a digest of the secret could be guessed at.
    secrets = {name: item for name, item in given if isinstance(item, Secret)}
    ports = tuple(port.base + index for port in payload.ports)
    run_as = RunAs(
        fill(payload.environment_file, values),
        payload.user,
        payload.user_group,
        payload.umask,
        payload.limits,
    )
    made_of: tuple[object, ...] = (
        command,
        {**environment, **secrets},
        directory,
        ports,
        payload.stop_timeout_seconds,
        payload.version,
        restart_on,
    )
    # Only where they are declared, so that an upgrade of Lehr rolls nothing.
    if payload.stop_signal != "SIGTERM":
        made_of += (payload.stop_signal,)
    made_of += tuple(item for item in (run_as, payload.logs) if item not in (RunAs(), Logs()))

    def probe(given: Probe | None) -> Probe | None:
        return None if given is None else given.filled(lambda text: fill(text, values))

    return Replica(
        index=index,
        group=group,
        content=digest(made_of),
        command=command,
        environment=environment,
        directory=directory,
        ports=ports,
        health=probe(payload.liveness),
        readiness=probe(payload.readiness),
        health_interval=payload.health_interval_seconds,
        health_timeout=payload.health_timeout_seconds,
        start_timeout=payload.start_timeout_seconds,
        stop_timeout=payload.stop_timeout_seconds,
        version=payload.version,
        secrets=secrets,
        reload_signal=payload.reload_signal or "SIGHUP",
        reload_command=tuple(fill(text, values) for text in payload.reload_command),
        stop_signal=payload.stop_signal,
        run_as=run_as,
        logs=payload.logs,
    )


def fill(text: str, values: Mapping[str, str]) -> str:
    """`text` with its placeholders replaced; `{{port}}` becomes `{port}`."""

    def one(match: re.Match[str]) -> str:
        before, name, after = match.groups()
        if before and after:
            return f"{{{name}}}"
        return f"{before}{values[name]}{after}"

    return PLACEHOLDER.sub(one, text)


def asset_name(key: AssetKey) -> str:
    """The asset's name in supervisord and in file names; different assets, different names.

    `/` and `:` are not allowed in supervisord's names, `+` and `=` do not occur in asset ids.
    """
    name = str(key).replace("/", "+").replace(":", "=")
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 41]}~{digest_bytes(name.encode())}"


def program_name(key: AssetKey, index: int) -> str:
    """The name of a replica's program in supervisord."""
    return f"{asset_name(key)}-{index}"


def program_section(name: str, launcher: Sequence[str], replica: Replica, logs: str) -> str:
    """The section of supervisord's configuration that defines one program.

    It contains nothing that people write: the launcher reads command and environment from a JSON file,
    because supervisord's own syntax mangles quotes, `%`, `;` and line ends. `autostart` is off so that a
    restarted supervisord starts nothing that is fenced, or that still runs as an orphan of its predecessor.
    User, umask and limits are the launcher's to set: it reads its file, and writes its note, before.

    Args:
        name: of the program.
        launcher: command that becomes the program.
        replica: that it runs.
        logs: path of the log files without `.stdout.log`, relative to the group's directory.
    """
    command = shlex.join(launcher).replace("%", "%%")
    lines = [
        f"[program:{name}]",
        f"command={command}",
        "autostart=false",
        "autorestart=true",
        "startsecs=1",
        "startretries=3",
        f"stopsignal={replica.stop_signal.removeprefix('SIG')}",
        f"stopwaitsecs={math.ceil(replica.stop_timeout)}",
        "stopasgroup=true",
        "killasgroup=true",
    ]
    if replica.logs.merge_stderr:
        lines.append("redirect_stderr=true")
    for stream in ("stdout",) if replica.logs.merge_stderr else ("stdout", "stderr"):
        lines += [
            f"{stream}_logfile={logs}.{stream}.log",
            f"{stream}_logfile_maxbytes={replica.logs.max_file_mib}MB",
            f"{stream}_logfile_backups={replica.logs.max_files - 1}",
        ]
    return "\n".join(lines) + "\n"


def launch_document(
    replica: Replica,
    base: Mapping[str, str],
    marks: Mapping[str, str],
    record: str,
    secrets: Mapping[str, SecretValue],
) -> bytes:
    """The document that the launcher reads to become a replica.

    Args:
        replica: what to become.
        base: variables from Lehr's own environment.
        marks: Lehr's own variables, which identify the process.
        record: path of the file in which the launcher notes which process it became.
        secrets: further variables.
    """
    document = {
        **_launch(replica, base, marks, record, secrets),
        "secrets": msgspec.to_builtins(replica.secrets),  # not mistaken for plain variables
        "health_url": "" if replica.health is None else replica.health.url,  # to show later what was intended
    }
    return json.dumps(document).encode()


def reload_document(
    replica: Replica,
    base: Mapping[str, str],
    marks: Mapping[str, str],
    record: str,
    secrets: Mapping[str, SecretValue],
    pid: int,
) -> bytes:
    """The document that the launcher reads to become the command that reloads process `pid` of a replica.

    The command runs as the program does. Other arguments as above.
    """
    document = _launch(replica, base, marks, record, secrets)
    document["command"] = replica.reload_command
    document["environment"]["MAINPID"] = str(pid)
    document["limit"] = replica.start_timeout + 1  # its starter gives up earlier, unless it has been killed
    return json.dumps(document).encode()


def _launch(
    replica: Replica,
    base: Mapping[str, str],
    marks: Mapping[str, str],
    record: str,
    secrets: Mapping[str, SecretValue],
) -> dict[str, Any]:
    revealed = {name: value.text() for name, value in secrets.items()}
    declared = {**replica.environment, **revealed, **marks}
    return {
        "command": replica.command,
        "environment": {**base, **declared},
        "inherited": [name for name in base if name not in declared],
        "run_as": msgspec.to_builtins(replica.run_as),
        "logs": msgspec.to_builtins(replica.logs),  # to show later what was intended
        "directory": replica.directory,
        "record": record,
        "marks": dict(marks),
    }
