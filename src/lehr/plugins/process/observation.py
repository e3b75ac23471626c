"""Values: the running state of an asset."""

from __future__ import annotations

import enum

import msgspec

from lehr.plugins.process.procfs import Parentage, ProcessId


class State(enum.StrEnum):
    """Of a program, in supervisord's words; ABSENT when supervisord does not know it."""

    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    BACKOFF = "backoff"
    STOPPING = "stopping"
    EXITED = "exited"
    FATAL = "fatal"
    UNKNOWN = "unknown"
    ABSENT = "absent"


class Health(enum.StrEnum):
    """Of a replica that runs.

    STARTING: not yet healthy, and still within its time to start. NOT_READY: to be left alone until it is.
    """

    HEALTHY = "healthy"
    STARTING = "starting"
    UNHEALTHY = "unhealthy"
    NOT_READY = "not ready"


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One replica's program as shown by a supervisord, or only by its definition on disk.

    Attributes:
        pid: None when no process runs.
        age: seconds since its start.
        content: what the process was started with, or what supervisord is about to start; empty if neither
            applies, or if it is unknown.
        restart: the request to restart for which it was started; empty like `content`, or if there was none.
        version, ports: what the running process was started with; empty like `content`.
        loaded: what it read at its start or its last reload; empty if it reloads nothing, or if unknown.
        launching: True until the process has become the program.
        since: start of the last run, in clock ticks since boot; 0 if unknown.
        restarts: when supervisord started it again after it had ended, in ascending wall-clock seconds;
            of many, the last ones.
        restarted: how often supervisord has done so since its last push.
        ended: how the run before the last ended, in supervisord's words; empty when not known.
    """

    group: str
    index: int
    state: State
    pid: int | None = None
    age: float = 0.0
    content: str = ""
    loaded: str = ""
    restart: str = ""
    version: str = ""
    ports: tuple[int, ...] = ()
    launching: bool = False
    since: int = 0
    restarts: tuple[float, ...] = ()
    restarted: int = 0
    ended: str = ""

    @property
    def live(self) -> bool:
        """True while it serves, or is about to."""
        return self.state in (State.RUNNING, State.STARTING)

    @property
    def returning(self) -> bool:
        """True while supervisord is about to start it again, because it has ended."""
        return self.state in (State.EXITED, State.BACKOFF)


class LeftBehind(msgspec.Struct, frozen=True):
    """A process of a replica that no supervisord manages.

    Such are the children of a supervisord that was killed, and processes that a program started and did not
    end. Next to a running program, only those count that hold one of its ports: workers whose master has
    died.
    """

    index: int
    process: ProcessId
    version: str = ""
    ports: tuple[int, ...] = ()


class Observation(msgspec.Struct, frozen=True):
    """The observed state of one asset.

    Attributes:
        processes: that run its programs.
    """

    programs: tuple[Program, ...] = ()
    left_behind: tuple[LeftBehind, ...] = ()
    processes: tuple[Parentage, ...] = ()

    def at(self, index: int) -> list[Program]:
        """The programs of one replica: more than one while it moves between groups."""
        return [program for program in self.programs if program.index == index]

    def indices(self) -> list[int]:
        """Indexes of all replicas that have a program or a stray process."""
        found = {program.index for program in self.programs}
        return sorted(found.union(item.index for item in self.left_behind))
