"""Observes what runs of an asset, through supervisord and `/proc`. Blocks briefly."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from lehr.base.errors import TransientError, raised_as
from lehr.model.asset import AssetKey
from lehr.plugins.process import launch, procfs, rpc
from lehr.plugins.process.observation import LeftBehind, Observation, Program, State
from lehr.plugins.process.ownership import Marks, Ownership, read_note
from lehr.plugins.process.reload import command_runs, reloaded
from lehr.plugins.process.render import asset_name, program_name
from lehr.plugins.process.supervisord import COMMAND, last_end

Marked = tuple[procfs.ProcessId, Marks]

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


class ObserveRequest(NamedTuple):
    """An asset to observe.

    Attributes:
        group: where `size` replicas are intended; None if none are.
        places: indexes of the replicas that may exist, by group.
    """

    key: AssetKey
    group: str | None
    size: int
    places: dict[str, list[int]]


def seek(root: Path, key: AssetKey, group: str | None = None, size: int = 0) -> ObserveRequest:
    """The asset with its places: replicas that are intended, and those defined on disk in any group.

    Args:
        root: `<state>/supervisor`.

    Raises:
        TransientError: the definitions cannot be listed.
    """
    places = {}
    for name in sorted(groups(root) | ({group} if group is not None else set())):
        indices = _defined(root / name, key) | (set(range(size)) if name == group else set())
        if indices:
            places[name] = sorted(indices)
    return ObserveRequest(key, group, size, places)


def observe(root: Path, assets: Mapping[int, ObserveRequest]) -> dict[int, Observation | TransientError]:
    """The observed state of each asset, from one call to each supervisord and one list of processes.

    Args:
        root: `<state>/supervisor`.

    Raises:
        TransientError: a supervisord does not answer.
    """
    answers = _ask(root, *assets.values())
    programs: dict[int, list[Program]] = {}
    found: dict[int, Observation | TransientError] = {}
    for number, asset in assets.items():
        try:
            programs[number] = _programs(root, asset, answers)
        except TransientError as error:
            found[number] = error
    # Listed after all programs were read: a process that has ended in between is not left behind.
    only = next(iter(assets.values())).key if len(assets) == 1 else None
    marked = functools.cache(lambda: list(Ownership(root, only).marked()))
    return found | {number: _observation(assets[number], item, marked) for number, item in programs.items()}


def underway(root: Path, key: AssetKey) -> bool:
    """True while a process of the asset `key` ends as asked, is reloaded, or is not yet its program.

    Raises:
        TransientError: a supervisord does not answer.
    """
    asset = seek(root, key)
    return any(
        program.state is State.STOPPING
        or (program.pid is not None and _launching(program.pid))
        or command_runs(root / program.group / "assets" / asset_name(key), program.index)
        for program in _programs(root, asset, _ask(root, asset))
    )


def groups(root: Path) -> set[str]:
    """Names of all groups that have files."""
    with (
        raised_as(TransientError, f"cannot list {root}", code="PRO103"),
        contextlib.suppress(FileNotFoundError),
    ):
        return {entry.name for entry in root.iterdir() if entry.is_dir()}
    return set()


def state_of(information: dict[str, Any] | None) -> State:
    """The state that supervisord reports."""
    return State.ABSENT if information is None else _STATES.get(information["state"], State.UNKNOWN)


def left_behind(
    marked: Iterable[Marked], key: AssetKey, supervised: Mapping[int, int]
) -> tuple[LeftBehind, ...]:
    """Processes of the asset's replicas that no supervisord manages.

    Args:
        marked: processes of replicas, from `Ownership`.
        supervised: replicas that run, and when the last run of each began, in clock ticks since boot.
    """
    found = []
    for process, marks in marked:
        owner, _, index = marks.get(procfs.REPLICA, "").rpartition("#")
        if owner != str(key) or not index.isdecimal():
            continue
        ports, since = _ports(marks), supervised.get(int(index))
        if since is None or (process.start < since and _holds(process, ports)):
            found.append(LeftBehind(int(index), process, marks.get(procfs.VERSION, ""), ports))
    return tuple(found)


def _observation(
    asset: ObserveRequest, programs: list[Program], marked: Callable[[], Iterable[Marked]]
) -> Observation:
    supervised = {program.index: program.since for program in programs if program.pid is not None}
    pids = (program.pid for program in programs if program.pid is not None)
    processes = tuple(found for pid in pids if (found := procfs.parentage(pid)) is not None)
    live = {program.index for program in programs if program.live and program.group == asset.group}
    crashed = any(program.restarts for program in programs)
    if asset.group is not None and live.issuperset(range(asset.size)) and not crashed:
        return Observation(tuple(programs), (), processes)
    return Observation(tuple(programs), left_behind(marked(), asset.key, supervised), processes)


def _holds(process: procfs.ProcessId, ports: tuple[int, ...]) -> bool:
    return bool(ports) and not set(ports).isdisjoint(procfs.listening_ports(process.pid))


def _defined(directory: Path, key: AssetKey) -> set[int]:
    definitions = directory / "assets" / asset_name(key)
    with (
        raised_as(TransientError, f"cannot list {directory}", code="PRO104"),
        contextlib.suppress(FileNotFoundError),
    ):
        names = [entry.stem for entry in definitions.iterdir() if entry.suffix == ".ini"]
        return {int(name) for name in names if name.isdecimal()}
    return set()


def _ask(root: Path, *assets: ObserveRequest) -> dict[str, dict[str, Any]]:
    """Each supervisord's answers about programs, by group and name; None where it does not run."""
    names: dict[str, list[str]] = {}
    for asset in assets:
        for group, indices in asset.places.items():
            names.setdefault(group, []).extend(program_name(asset.key, index) for index in indices)
    found = {}
    for group, asked in names.items():
        try:
            answers = rpc.call_each(root / group, "getProcessInfo", asked)
        except rpc.NotRunningError:
            answers = [None] * len(asked)
        found[group] = dict(zip(asked, answers, strict=True))
    return found


def _programs(root: Path, asset: ObserveRequest, answers: Mapping[str, Mapping[str, Any]]) -> list[Program]:
    found = []
    for group, indices in asset.places.items():
        defined = _defined(root / group, asset.key)
        for index in indices:
            answer = answers[group][program_name(asset.key, index)]
            refused = isinstance(answer, rpc.RefusedError)
            if refused and answer.number != rpc.RefusedError.BAD_NAME:
                raise answer
            known = None if refused else answer
            if known is not None or index in defined:
                found.append(_program(root / group, asset.key, index, known))
    return found


def _program(directory: Path, key: AssetKey, index: int, answer: dict[str, Any] | None) -> Program:
    files = directory / "assets" / asset_name(key)
    record, document = files / f"{index}.run", files / f"{index}.json"
    state, pid = state_of(answer), None if answer is None else answer["pid"] or None
    process = None if pid is None else procfs.identify(pid)
    known = None if process is None else _marks(record, process)
    if pid is not None and (process is None or not procfs.alive(process)):
        pid = None  # it has ended, perhaps while it was read, and supervisord is about to notice
        state = State.EXITED if state in (State.RUNNING, State.STARTING) else state
    found = Program(group=directory.name, index=index, state=state, pid=pid)
    if (note := read_note(record)) is not None:
        restarts = tuple(note.restarts)
        how = last_end(directory, program_name(key, index)) if restarts else ""
        found = replace(found, since=note.process.start, restarts=restarts, ended=how)
        found = replace(found, restarted=note.started - 1)
    if answer is None or pid is None or process is None:
        comes = _defined_marks(document) if state in (State.EXITED, State.BACKOFF) else {}
        return replace(found, content=comes.get(procfs.CONTENT, ""), loaded=comes.get(procfs.LOADED, ""))
    marks = _defined_marks(document) if known is None else known
    again = reloaded(files, index, process)
    return replace(
        found,
        launching=known is None,
        age=float(max(0, answer["now"] - answer["start"])),
        content=marks.get(procfs.CONTENT, ""),
        loaded=marks.get(procfs.LOADED, "") if again is None else again,
        restart=marks.get(procfs.RESTART, ""),
        version=marks.get(procfs.VERSION, ""),
        ports=_ports(marks),
    )


def _marks(record: Path, process: procfs.ProcessId) -> Mapping[str, str] | None:
    """The marks that the process was started with; None if it is still about to become its program.

    They mean nothing if the process has ended by then.
    """
    for _ in range(2):
        note = read_note(record)
        if note is not None and note.process == process:
            return note.marks
        if _launching(process.pid):
            return None
        # Perhaps no longer: then it was noted after the note was read.
    return procfs.environment(process.pid)


def _defined_marks(document: Path) -> dict[str, str]:
    """The marks that the launcher will give the replica; empty if unreadable."""
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
    return not command or launch.__file__ in command or command == COMMAND  # it has none while it executes


def _ports(marks: Mapping[str, str]) -> tuple[int, ...]:
    return tuple(int(port) for port in marks.get(procfs.PORTS, "").split(",") if port.isdecimal())
