"""What is the one next step towards a cluster of the intended size? Decided here, without I/O."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable

import msgspec

SLOTS = 8
"""Places for members on this machine: one more than the largest cluster has."""

SILENT_SECONDS = 30.0
"""A process that does not answer for so long is started again."""


class Do(enum.Enum):
    """Kinds of steps."""

    BEGIN = "begin the cluster"
    LAUNCH = "launch a new member"
    START = "start a member again"
    KILL = "kill a process"
    DISCARD = "discard what a former member left"
    ADD = "add a member"
    PROMOTE = "let a member vote"
    REMOVE = "remove a member"
    WAIT = "wait"
    REST = "rest"


class Step(msgspec.Struct, frozen=True):
    """The next step.

    Attributes:
        why: in one line, for people.
        home: of the member that it is about, for LAUNCH, START, KILL and DISCARD.
        slot: where to add.
        id: of the member to promote or to remove, or to launch.
    """

    do: Do
    why: str
    home: str = ""
    slot: int = 0
    id: int = 0


class Member(msgspec.Struct, frozen=True):
    """A member, as the cluster has it.

    Attributes:
        name: empty before it has ever come up.
        learner: it does not vote yet.
    """

    id: int
    slot: int
    name: str = ""
    learner: bool = False

    @property
    def home(self) -> str:
        """Name of the folder in which it keeps its data."""
        return self.name or home_of(self.slot, self.id)


def home_of(slot: int, id: int) -> str:
    """The folder of a member that was added; its name, too, once it has come up."""
    return f"{slot}-{id:016x}"


class Home(msgspec.Struct, frozen=True):
    """What this machine has of a member, or of a former one.

    Attributes:
        launched: it was started once, or was about to be.
        data: there are data to start it with.
        process: number of its process; 0 if there is none.
        silent: seconds for which the process has been there without an answer.
        ruined: it has ended again and again before it answered, so the data are of no use.
    """

    name: str
    slot: int
    launched: bool = False
    data: bool = False
    process: int = 0
    silent: float = 0.0
    ruined: bool = False

    @property
    def running(self) -> bool:
        """Whether there is a process."""
        return self.process != 0


class View(msgspec.Struct, frozen=True):
    """The cluster, as a quorum of it agrees on.

    Attributes:
        answering: ids of voters that take part: each has just seen all that was agreed on.
    """

    members: tuple[Member, ...]
    answering: frozenset[int]
    leader: int = 0

    @property
    def voters(self) -> tuple[Member, ...]:
        """Members whose vote counts."""
        return tuple(member for member in self.members if not member.learner)

    def answer(self, but: int = 0) -> int:
        """How many voters answer, apart from one."""
        return sum(member.id in self.answering and member.id != but for member in self.voters)


class Seen(msgspec.Struct, frozen=True):
    """All that is seen of a cluster.

    Attributes:
        first: home of the first member; empty before the cluster was begun.
        known: whether the cluster was ever seen to work.
        view: None while no quorum answers.
        homes: by name.
        change: what was asked for, in words, while it is not known what has come of it; else empty.
    """

    first: str
    known: bool
    view: View | None
    homes: dict[str, Home]
    change: str = ""


def quorum(voters: int) -> int:
    """How many of so many voters have to take part."""
    return voters // 2 + 1


def plan(size: int, seen: Seen) -> Step:
    """The next step towards a cluster of `size` voters."""
    if seen.view is None:
        return _without_quorum(seen)
    for rule in RULES:
        step = rule(size, seen, seen.view)
        if step is not None:
            return step
    return Step(Do.REST, f"{size} of {size} members are there")


def _without_quorum(seen: Seen) -> Step:
    """Only starts what is there. Nothing else could be known to be right."""
    if not seen.first:
        return Step(Do.BEGIN, "there is no cluster yet")
    for home in seen.homes.values():
        if home.data and not home.running:
            return _start(home)
    first = seen.homes.get(seen.first)
    if not seen.known and (first is None or not first.running):
        # Nobody has joined it, nor seen it work: what is not there was never begun.
        return Step(Do.LAUNCH, "the first member has not begun", seen.first)
    lost = [home.name for home in seen.homes.values() if not (home.data or home.running)]
    if not any(home.running for home in seen.homes.values()):
        return Step(Do.WAIT, f"no member has data any more ({_listed(lost)}): restore a snapshot by hand")
    return Step(Do.WAIT, "no quorum answers" + (f"; without data: {_listed(lost)}" if lost else ""))


def _start_again(size: int, seen: Seen, view: View) -> Step | None:
    """A voter whose process has ended, and whose data are there, goes on where it was."""
    for member in view.voters:
        home = seen.homes.get(member.home)
        if home is not None and home.data and not home.running and not home.ruined:
            return _start(home)
    return None


def _tidy(size: int, seen: Seen, view: View) -> Step | None:
    """Who is no member any more has no process, and then no data."""
    members = {member.home for member in view.members}
    for home in seen.homes.values():
        if home.name not in members:
            do = Do.KILL if home.running else Do.DISCARD
            return Step(do, f"{home.name} is no member any more", home.name)
    return None


def _one_at_a_time(size: int, seen: Seen, view: View) -> Step | None:
    return Step(Do.WAIT, f"it is not known what came of this yet: {seen.change}") if seen.change else None


def _replace_lost(size: int, seen: Seen, view: View) -> Step | None:
    """A voter without data is removed; another one is added then."""
    for member in view.voters:
        home = seen.homes.get(member.home)
        if home is None or not (home.running or (home.data and not home.ruined)):
            if view.answer(but=member.id) >= quorum(len(view.voters) - 1):
                return Step(Do.REMOVE, f"{member.home} has lost its data", id=member.id)
            return Step(Do.WAIT, f"{member.home} has lost its data, and too few others answer to remove it")
    return None


def _bring_up_learner(size: int, seen: Seen, view: View) -> Step | None:
    for member in view.members:
        if not member.learner:
            continue
        home = seen.homes.get(member.home)
        if len(view.voters) >= size:
            return Step(Do.REMOVE, f"{member.home} is not needed any more", id=member.id)
        if member.name and home is None:
            return Step(Do.REMOVE, f"{member.home} has lost its data before it could vote", id=member.id)
        if home is None or not home.launched:
            return Step(Do.LAUNCH, f"{member.home} was added", member.home, member.slot, member.id)
        if not home.running:
            # How far it has come is not known, and it is cheap to begin again.
            return Step(Do.REMOVE, f"{member.home} has ended before it could vote", id=member.id)
        if not member.name:
            return Step(Do.WAIT, f"{member.home} comes up")
        if view.answer() == len(view.voters):
            return Step(Do.PROMOTE, f"{member.home} has learnt", id=member.id)
    return None


def _restart_silent(size: int, seen: Seen, view: View) -> Step | None:
    """A process that hangs is killed, if the cluster gets along without it."""
    for member in view.voters:
        home = seen.homes.get(member.home)
        if (
            home is not None
            and home.silent >= SILENT_SECONDS
            and member.id not in view.answering
            and view.answer() >= quorum(len(view.voters))
        ):
            return Step(Do.KILL, f"{home.name} has not answered for {home.silent:.0f} s", home.name)
    return None


def _wait_for_all(size: int, seen: Seen, view: View) -> Step | None:
    """No healthy member is removed, and none is added, while another does not answer."""
    away = [member.home for member in view.voters if member.id not in view.answering]
    return Step(Do.WAIT, f"{_listed(away)} does not answer") if away else None


def _shrink(size: int, seen: Seen, view: View) -> Step | None:
    if len(view.voters) <= size:
        return None
    followers = [member for member in view.voters if member.id != view.leader]
    last = max(followers, key=lambda member: member.slot)
    return Step(Do.REMOVE, f"{len(view.voters)} vote, {size} are intended", id=last.id)


def _grow(size: int, seen: Seen, view: View) -> Step | None:
    if len(view.members) >= size:
        return None
    taken = {member.slot for member in view.members} | {home.slot for home in seen.homes.values()}
    free = next((slot for slot in range(SLOTS) if slot not in taken), None)
    if free is None:
        return Step(Do.WAIT, "all places are taken")
    return Step(Do.ADD, f"{len(view.voters)} vote, {size} are intended", slot=free)


RULES: tuple[Callable[[int, Seen, View], Step | None], ...] = (
    _start_again,
    _tidy,
    _one_at_a_time,
    _replace_lost,
    _bring_up_learner,
    _restart_silent,
    _wait_for_all,
    _shrink,
    _grow,
)
"""In this order; the first that has a step to take decides."""


def _start(home: Home) -> Step:
    return Step(Do.START, f"the process of {home.name} has ended", home.name)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
