"""Drafts `lehr.Process` from the programs that Lehr runs. Blocks; read-only.

Lehr keeps what each replica was started with, but not how that was written: whether a port in an argument was
a placeholder, or which variables were declared. So a draft is a guess, and its caller renders it again and
compares (`ProcessPlugin.discover`).
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lehr.base.errors import StalledError, raised_as
from lehr.model.asset import Partition
from lehr.model.secret import Secret
from lehr.plugins.process import procfs, strangers
from lehr.plugins.process.observe import groups
from lehr.plugins.process.ownership import Ownership
from lehr.plugins.process.payload import PROCESS, RESERVED
from lehr.sdk.discovered_ids import Ids
from lehr.sdk.plugin import Found

_STOP = re.compile(r"^(stopsignal|stopwaitsecs)=(\w+)$", re.MULTILINE)


class _Launch(msgspec.Struct):
    """The settings that a replica was started with; see `render.launch_document`."""

    command: list[str]
    environment: dict[str, str]
    directory: str
    marks: dict[str, str]
    health_url: str = ""
    run_as: dict[str, Any] = {}
    logs: dict[str, Any] = {}
    secrets: dict[str, Secret] = {}

    @property
    def ports(self) -> list[int]:
        """Ports that it listens on."""
        return [int(port) for port in self.marks.get(procfs.PORTS, "").split(",") if port.isdecimal()]


_launch = msgspec.json.Decoder(_Launch)


def drafts(
    root: Path, query: Sequence[str], partition: Partition, inherited: Mapping[str, str], base: str
) -> list[Found]:
    """Drafts of the programs in `query`: patterns of ids, ports, or names of programs.

    Args:
        root: `<state>/supervisor`.
        inherited: variables that every program gets from Lehr.
        base: the directory that relative ones start from.

    Raises:
        StalledError: one of them matches nothing, or Lehr's record of a replica cannot be read.
    """
    ids, found, owned = Ids(), dict[str, Found](), Ownership(root)
    for word in query:
        port = strangers.port_of(word)
        pids = [] if port is None else [strangers.listening(port)]
        names = [word] if port is None else [_id_of(owned, pid, partition) for pid in pids]
        matching = list(_own(root, partition, names, inherited, base))
        if not matching:
            matching = list(strangers.drafts(pids or strangers.named(word), owned, base, ids))
        if not matching:
            raise StalledError(
                f"no program matches {word}",
                code="PRO101",
                why=f"Lehr runs no asset with such an id in partition {partition}, and no program has "
                "such a name",
                fix="name an id, a port, or a program as `ps -o comm` does",
            )
        found |= {draft.id: draft for draft in matching}
    return list(found.values())


def _id_of(owned: Ownership, pid: int, partition: Partition) -> str:
    """The id of the asset that `pid` is a replica of; empty if not of `partition`."""
    of, _, replica = owned.marks(pid).get(procfs.REPLICA, "").partition(":")
    return replica.rpartition("#")[0] if of == partition else ""


def _own(
    root: Path, partition: Partition, patterns: Sequence[str], inherited: Mapping[str, str], base: str
) -> Iterator[Found]:
    """Drafts of programs that Lehr runs in `partition`, by patterns of ids."""
    for group in sorted(groups(root)):
        for folder in sorted((root / group).glob("assets/*")):
            replicas = _replicas(folder)
            owner = next(iter(replicas.values())).marks.get(procfs.REPLICA, "") if replicas else ""
            of, _, id = owner.rpartition("#")[0].partition(":")
            if of != partition or not any(fnmatch.fnmatchcase(id, pattern) for pattern in patterns):
                continue
            payload = _payload(replicas, inherited)
            if group != partition:
                payload["group"] = group
            if payload["directory"] == base:
                del payload["directory"]
            stop = _stop(folder)
            if (signal := stop.get("stopsignal", "TERM")) != "TERM":
                payload["stop_signal"] = f"SIG{signal}"
            if (seconds := stop.get("stopwaitsecs", "10")) != "10":
                payload["stop_timeout_seconds"] = int(seconds)
            note = "its probes other than `health_url` and its timeouts of start and health are not recorded"
            yield Found(id=id, type=PROCESS, payload=payload, notes=(note,))


def _replicas(folder: Path) -> dict[int, _Launch]:
    """The settings that each replica was started with, by index."""
    paths = (path for path in folder.glob("*.json") if path.stem.isdecimal())
    found = {}
    for path in paths:
        what, fix = f"{path} cannot be read", "make it readable, or restart the replica"
        with raised_as(StalledError, what, code="PRO102", fix=fix, on=(OSError, msgspec.MsgspecError)):
            found[int(path.stem)] = _launch.decode(path.read_bytes())
    return dict(sorted(found.items()))


def _stop(folder: Path) -> dict[str, str]:
    """Supervisord's settings for the end of a replica."""
    text = next((path.read_text() for path in sorted(folder.glob("*.ini"))), "")
    return dict(_STOP.findall(text))


def _payload(replicas: Mapping[int, _Launch], inherited: Mapping[str, str]) -> dict[str, Any]:
    first = next(iter(replicas.values()))
    ports = [port - min(replicas) for port in first.ports]
    names = strangers.port_names(len(ports))
    declared = {
        name
        for name, value in first.environment.items()
        if not name.startswith(RESERVED) and name not in first.secrets and inherited.get(name) != value
    }
    words = itertools.zip_longest(*(launch.command for launch in replicas.values()), fillvalue="")
    payload: dict[str, Any] = {
        "command": [_template(replicas, names, texts) for texts in words],
        "directory": first.directory,
        "replicas": len(replicas),
    }
    if environment := _environment(replicas, names, declared) | msgspec.to_builtins(first.secrets):
        payload["environment"] = environment
    if ports:
        payload["ports"] = [{"name": name, "base": base} for name, base in zip(names, ports, strict=True)]
    if first.health_url:
        urls = [launch.health_url for launch in replicas.values()]
        payload["health_url"] = _template(replicas, names, urls)
    payload |= first.run_as
    if first.logs:
        payload["logs"] = first.logs
    if version := first.marks.get(procfs.VERSION):
        payload["version"] = version
    return payload


def _environment(
    replicas: Mapping[int, _Launch], names: Sequence[str], declared: Collection[str]
) -> dict[str, str]:
    values = {key: [launch.environment.get(key, "") for launch in replicas.values()] for key in declared}
    return {key: _template(replicas, names, texts) for key, texts in sorted(values.items())}


def _template(replicas: Mapping[int, _Launch], names: Sequence[str], texts: Sequence[str]) -> str:
    """One text for all replicas: each one's ports as placeholders, and its number where they differ."""
    pairs = zip(texts, replicas.values(), strict=True)
    found = [strangers.with_ports(text, launch.ports, names) for text, launch in pairs]
    if len(set(found)) > 1:
        found = [
            strangers.number(index).sub("{replica}", text)
            for index, text in zip(replicas, found, strict=True)
        ]
    return found[0]
