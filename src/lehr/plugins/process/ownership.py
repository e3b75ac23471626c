"""Finds the replica of a process, even if it has overwritten its environment. Blocks briefly.

A process belongs to a replica if one of these shows it, checked in this order:

1. its environment, which has Lehr's marks unless the program has overwritten it (nginx, Redis, PostgreSQL);
2. the replica's note, in which `launch` has written which process it became, now and before;
3. its process group: supervisord gives each replica one, which workers keep when their master has died;
4. its parent, if that belongs to the replica.

Lehr may end a process because of one of the first three; a parent alone is not enough (for example a login
session below an `sshd`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from lehr.model.asset import AssetKey
from lehr.plugins.process import procfs
from lehr.plugins.process.render import asset_name

Marks = Mapping[str, str]


class Run(msgspec.Struct, frozen=True):
    """One process that a replica became.

    Attributes:
        start: in clock ticks since boot, as in `procfs.ProcessId`.
        at: in wall-clock seconds.
    """

    pid: int
    start: int
    at: float


class Note(msgspec.Struct, frozen=True):
    """The note that `launch` has written about a replica since its definition.

    Attributes:
        boot: the start of the machine in which `runs` happened.
        session: of the supervisord, which its programs inherit.
        marks: what each run was started with.
        runs: the last ones and every one that left processes behind; the newest is the last.
        started: number of runs so far.
    """

    boot: str
    session: int
    marks: dict[str, str]
    runs: list[Run]
    started: int

    @property
    def process(self) -> procfs.ProcessId:
        """The process that the replica became last."""
        return procfs.ProcessId(self.runs[-1].pid, self.runs[-1].start)

    @property
    def restarts(self) -> list[float]:
        """When the replica was restarted, as far as recorded; ascending wall-clock seconds."""
        return [run.at for run in (self.runs[1:] if self.started == len(self.runs) else self.runs)]


_note = msgspec.json.Decoder(Note)


def read_note(path: Path) -> Note | None:
    """The note at `path`; None if it is missing or unreadable."""
    try:
        note = _note.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
    return note if note.runs else None


class Ownership:
    """Owners of this machine's processes, at the time of construction.

    Args:
        root: `<state>/supervisor`.
        key: the only asset whose replicas matter; None for those of all assets.
    """

    def __init__(self, root: Path, key: AssetKey | None = None) -> None:
        self._root = f"{root}/"
        self._processes = procfs.all_processes()
        boot = procfs.boot()
        self._runs: dict[int, list[tuple[Run, Note]]] = {}
        for path in root.glob(f"*/assets/{'*' if key is None else asset_name(key)}/*.run"):
            note = read_note(path)
            for run in () if note is None or note.boot != boot else note.runs:
                assert note is not None
                self._runs.setdefault(run.pid, []).append((run, note))

    def marked(self) -> Iterator[tuple[procfs.ProcessId, Marks]]:
        """All processes that belong to a replica and may be ended with it, with its marks."""
        for kin in self._processes.values():
            marks = self._own(kin)
            if marks:
                yield kin.process, marks

    def marks(self, pid: int) -> Marks:
        """The marks of the replica that `pid` belongs to; empty if it belongs to none."""
        seen: set[int] = set()
        while pid not in seen and (kin := self._processes.get(pid)) is not None:
            marks = self._own(kin)
            if marks is not None:
                return marks
            seen.add(pid)
            pid = kin.parent
        return {}

    def _own(self, kin: procfs.Kin) -> Marks | None:
        """The marks that the process itself shows; empty if it does not belong to a replica, None if it shows
        nothing.
        """
        environment = procfs.environment(kin.process.pid)
        supervisor = environment.get(procfs.SUPERVISOR)
        if supervisor is not None:  # a supervisord also has it, but not the name of a replica
            ours = supervisor.startswith(self._root) and procfs.REPLICA in environment
            return environment if ours else {}
        for run, note in self._runs.get(kin.process.pid, ()):
            if run.start == kin.process.start:
                return note.marks
        leader = self._processes.get(kin.group)
        for run, note in self._runs.get(kin.group, ()):
            # The number is reused only once the group is empty; then its session differs.
            same_leader = leader is None or leader.process.start == run.start
            if same_leader and kin.session == note.session and kin.process.start >= run.start:
                return note.marks
        return None
