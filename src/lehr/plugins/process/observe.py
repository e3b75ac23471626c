"""Looks at what of an asset runs now: supervisord's word and what `/proc` says. Blocks shortly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from lehr.base.errors import TransientError
from lehr.model.asset import AssetKey
from lehr.plugins.process import launch, procfs, rpc
from lehr.plugins.process.observation import LeftBehind, Observation, Program, State
from lehr.plugins.process.render import asset_name, program_name
from lehr.plugins.process.supervisord import COMMAND

_STATES = {
    0: State.STOPPED,
    10: State.STARTING,
    20: State.RUNNING,
    30: State.BACKOFF,
    40: State.STOPPING,
    100: State.EXITED,
    200: State.FATAL,
}


class _Record(msgspec.Struct):
    pid: int
    start: int
    marks: dict[str, str]


_record = msgspec.json.Decoder(_Record)


def observe(root: Path, key: AssetKey, group: str | None, count: int) -> Observation:
    """All that there is of the asset `key`, in any group.

    Args:
        root: `<state>/supervisor`.
        key: of the asset.
        group: where `count` replicas are intended; None when none are.
        count: replicas beside those that are defined on disk.

    Raises:
        TransientError: a supervisord does not answer.
    """
    programs: list[Program] = []
    for name in sorted(groups(root) | ({group} if group is not None else set())):
        indices = _defined(root / name, key) | (set(range(count)) if name == group else set())
        programs += _programs(root / name, key, sorted(indices))
    live = {program.index for program in programs if program.live and program.group == group}
    if group is not None and live.issuperset(range(count)):
        return Observation(tuple(programs))
    looked_after = frozenset(program.index for program in programs if program.pid is not None)
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
    """Names of all groups of which there are files."""
    try:
        return {entry.name for entry in root.iterdir() if entry.is_dir()}
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise TransientError(f"cannot list {root}", why=error.strerror or "") from error


def state_of(information: dict[str, Any] | None) -> State:
    """The state that supervisord reports."""
    return State.ABSENT if information is None else _STATES.get(information["state"], State.UNKNOWN)


def left_behind(root: Path, key: AssetKey, looked_after: frozenset[int]) -> tuple[LeftBehind, ...]:
    """Processes of the asset's replicas, apart from those of the replicas `looked_after`."""
    found = []
    for process, environment in procfs.marked(root):
        owner, _, index = environment.get(procfs.REPLICA, "").rpartition("#")
        if owner == str(key) and index.isdecimal() and int(index) not in looked_after:
            version = environment.get(procfs.VERSION, "")
            found.append(LeftBehind(int(index), process, version, _ports(environment)))
    return tuple(found)


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
        raise TransientError(f"cannot list {directory}", why=error.strerror or "") from error
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
        if refused and answer.code != rpc.RefusedError.BAD_NAME:
            raise answer
        known = None if refused else answer
        if known is not None or index in defined:
            found.append(_program(directory, key, index, known))
    return found


def _program(directory: Path, key: AssetKey, index: int, answer: dict[str, Any] | None) -> Program:
    state = state_of(answer)
    if answer is None or not answer["pid"]:
        return Program(group=directory.name, index=index, state=state)
    marks = _marks(directory / "assets" / asset_name(key) / f"{index}.run", answer["pid"])
    return Program(
        group=directory.name,
        index=index,
        state=state,
        pid=answer["pid"],
        age=float(max(0, answer["now"] - answer["start"])),
        content=marks.get(procfs.CONTENT, ""),
        version=marks.get(procfs.VERSION, ""),
        ports=_ports(marks),
    )


def _marks(record: Path, pid: int) -> dict[str, str]:
    """What the process `pid` was started with: from its note, or else from its environment."""
    try:
        note = _record.decode(record.read_bytes())
    except (OSError, msgspec.DecodeError):
        return procfs.environment(pid)
    process = procfs.identify(pid)
    if process == procfs.ProcessId(note.pid, note.start):
        return note.marks
    return procfs.environment(pid)


def _launching(pid: int) -> bool:
    """True from the fork of supervisord until `launch` has become the program."""
    if procfs.REPLICA in procfs.environment(pid):
        return False
    command = procfs.arguments(pid)
    return launch.__file__ in command or command == COMMAND


def _ports(marks: dict[str, str]) -> tuple[int, ...]:
    return tuple(int(port) for port in marks.get(procfs.PORTS, "").split(",") if port.isdecimal())
