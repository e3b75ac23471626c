"""Observes what runs of an asset, through supervisord and `/proc`. Blocks briefly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from lehr.base.errors import TransientError
from lehr.model.asset import AssetKey
from lehr.plugins.process import launch, procfs, rpc
from lehr.plugins.process.observation import LeftBehind, Observation, Program, State
from lehr.plugins.process.ownership import Ownership, read_note
from lehr.plugins.process.render import asset_name, program_name
from lehr.plugins.process.supervisord import COMMAND, last_end

_STATES = {
    0: State.STOPPED,
    10: State.STARTING,
    20: State.RUNNING,
    30: State.BACKOFF,
    40: State.STOPPING,
    100: State.EXITED,
    200: State.FATAL,
}


class _Definition(msgspec.Struct):
    """The part of a launch document that identifies a replica."""

    marks: dict[str, str]


_definition = msgspec.json.Decoder(_Definition)


def observe(root: Path, key: AssetKey, group: str | None, count: int) -> Observation:
    """The observed state of the asset `key`, in any group.

    Args:
        root: `<state>/supervisor`.
        key: of the asset.
        group: where `count` replicas are intended; None if none are.
        count: intended replicas, besides those defined on disk.

    Raises:
        TransientError: a supervisord does not answer.
    """
    programs: list[Program] = []
    for name in sorted(groups(root) | ({group} if group is not None else set())):
        indices = _defined(root / name, key) | (set(range(count)) if name == group else set())
        programs += _programs(root / name, key, sorted(indices))
    live = {program.index for program in programs if program.live and program.group == group}
    crashed = any(program.restarts for program in programs)
    if group is not None and live.issuperset(range(count)) and not crashed:
        return Observation(tuple(programs))
    looked_after = {program.index: program.since for program in programs if program.pid is not None}
    return Observation(tuple(programs), left_behind(root, key, looked_after))


def underway(root: Path, key: AssetKey) -> bool:
    """True while a process of the asset `key` ends as asked, or has not become its program yet.

    Raises:
        TransientError: a supervisord does not answer.
    """
    for directory in (root / name for name in groups(root)):
        for program in _programs(directory, key, sorted(_defined(directory, key))):
            if program.state is State.STOPPING or (program.pid is not None and _launching(program.pid)):
                return True
    return False


def groups(root: Path) -> set[str]:
    """Names of all groups that have files."""
    try:
        return {entry.name for entry in root.iterdir() if entry.is_dir()}
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise TransientError(f"cannot list {root}", code="PRO103", why=error.strerror or "") from error


def state_of(information: dict[str, Any] | None) -> State:
    """The state that supervisord reports."""
    return State.ABSENT if information is None else _STATES.get(information["state"], State.UNKNOWN)


def left_behind(root: Path, key: AssetKey, looked_after: Mapping[int, int]) -> tuple[LeftBehind, ...]:
    """Processes of the asset's replicas that no supervisord manages.

    Args:
        looked_after: replicas that run, and when the last run of each began, in clock ticks since boot.
    """
    found = []
    for process, marks in Ownership(root, key).marked():
        owner, _, index = marks.get(procfs.REPLICA, "").rpartition("#")
        if owner != str(key) or not index.isdecimal():
            continue
        ports, since = _ports(marks), looked_after.get(int(index))
        if since is None or (process.start < since and _holds(process, ports)):
            found.append(LeftBehind(int(index), process, marks.get(procfs.VERSION, ""), ports))
    return tuple(found)


def _holds(process: procfs.ProcessId, ports: tuple[int, ...]) -> bool:
    return bool(ports) and not set(ports).isdisjoint(procfs.listening_ports(process.pid))


def _defined(directory: Path, key: AssetKey) -> set[int]:
    try:
        names = [
            entry.stem
            for entry in (directory / "assets" / asset_name(key)).iterdir()
            if entry.suffix == ".ini"
        ]
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise TransientError(f"cannot list {directory}", code="PRO104", why=error.strerror or "") from error
    return {int(name) for name in names if name.isdecimal()}


def _programs(directory: Path, key: AssetKey, indices: list[int]) -> list[Program]:
    try:
        answers = rpc.call_each(directory, "getProcessInfo", [program_name(key, index) for index in indices])
    except rpc.NotRunningError:
        answers = [None] * len(indices)
    defined = _defined(directory, key)
    found = []
    for index, answer in zip(indices, answers, strict=True):
        refused = isinstance(answer, rpc.RefusedError)
        if refused and answer.number != rpc.RefusedError.BAD_NAME:
            raise answer
        known = None if refused else answer
        if known is not None or index in defined:
            found.append(_program(directory, key, index, known))
    return found


def _program(directory: Path, key: AssetKey, index: int, answer: dict[str, Any] | None) -> Program:
    files = directory / "assets" / asset_name(key)
    record, document = files / f"{index}.run", files / f"{index}.json"
    state, pid = state_of(answer), None if answer is None else answer["pid"] or None
    if pid is not None and procfs.identify(pid) is None:  # it has ended, and supervisord is about to notice
        pid = None
        state = State.EXITED if state in (State.RUNNING, State.STARTING) else state
    found = Program(group=directory.name, index=index, state=state, pid=pid)
    if (note := read_note(record)) is not None:
        restarts = tuple(note.restarts)
        how = last_end(directory, program_name(key, index)) if restarts else ""
        found = replace(found, since=note.process.start, restarts=restarts, ended=how)
    if answer is None or pid is None:
        comes = _defined_marks(document) if state in (State.EXITED, State.BACKOFF) else {}
        return replace(found, content=comes.get(procfs.CONTENT, ""))
    known = _marks(record, pid)
    marks = _defined_marks(document) if known is None else known
    return replace(
        found,
        launching=known is None,
        age=float(max(0, answer["now"] - answer["start"])),
        content=marks.get(procfs.CONTENT, ""),
        version=marks.get(procfs.VERSION, ""),
        ports=_ports(marks),
    )


def _marks(record: Path, pid: int) -> Mapping[str, str] | None:
    """What the process `pid` was started with; None if it is still about to become its program."""
    process = procfs.identify(pid)
    for _ in range(2):
        note = read_note(record)
        if note is not None and note.process == process:
            return note.marks
        if _launching(pid):
            return None
        # Perhaps no longer: then it was noted after the note was read.
    return procfs.environment(pid)


def _defined_marks(document: Path) -> dict[str, str]:
    """What the launcher will start the replica with; empty if unreadable."""
    try:
        if not document.is_file():
            return {}
        return _definition.decode(document.read_bytes()).marks
    except (OSError, msgspec.DecodeError):
        return {}


def _launching(pid: int) -> bool:
    """True from the fork of supervisord until `launch` has become the program."""
    if procfs.REPLICA in procfs.environment(pid):
        return False
    command = procfs.arguments(pid)
    return launch.__file__ in command or command == COMMAND


def _ports(marks: Mapping[str, str]) -> tuple[int, ...]:
    return tuple(int(port) for port in marks.get(procfs.PORTS, "").split(",") if port.isdecimal())
