"""The etcd example decides rightly: one step at a time, and none that could cost the quorum."""

from __future__ import annotations

import msgspec
import pytest

from etcd_operator.plan import SILENT_SECONDS, SLOTS, Do, Home, Member, Seen, View, plan


def seen(voters: int, *, away: tuple[int, ...] = (), learner: str = "", **more: object) -> Seen:
    """A cluster in which all is well, but for voters that are `away`; `learner`: how far one has come."""
    members = [Member(number + 1, number, f"{number}-home") for number in range(voters)]
    homes = {member.home: Home(member.home, member.slot, True, True, 100 + member.id) for member in members}
    if learner:
        member = Member(voters + 1, voters, "" if learner == "added" else f"{voters}-home", True)
        members.append(member)
        if learner != "added":
            homes[member.home] = Home(member.home, voters, True, True, 1 if learner == "up" else 0)
    answering = frozenset(number + 1 for number in range(voters) if number not in away)
    view = View(tuple(members), answering, leader=min(answering))
    return msgspec.structs.replace(Seen("0-home", True, view, homes), **more)


def change(seen: Seen, number: int, **what: object) -> Seen:
    """The same, with another home of a member."""
    name = f"{number}-home"
    return msgspec.structs.replace(
        seen, homes={**seen.homes, name: msgspec.structs.replace(seen.homes[name], **what)}
    )


def forget(seen: Seen, number: int) -> Seen:
    """The same, without a member's home."""
    return msgspec.structs.replace(
        seen, homes={name: home for name, home in seen.homes.items() if name != f"{number}-home"}
    )


def blind(seen: Seen) -> Seen:
    """The same, and no quorum answers."""
    return msgspec.structs.replace(seen, view=None)


@pytest.mark.parametrize(
    ("size", "given", "do"),
    [
        (3, seen(3), Do.REST),
        (3, seen(1), Do.ADD),
        (3, seen(2, learner="added"), Do.LAUNCH),
        (3, seen(2, learner="up"), Do.PROMOTE),
        (3, seen(2, learner="ended"), Do.REMOVE),
        (1, seen(2, learner="up"), Do.REMOVE),
        (1, seen(3), Do.REMOVE),
        (3, change(seen(3, away=(2,)), 2, process=0), Do.START),
        (3, change(seen(3, away=(2,)), 2, process=0, ruined=True), Do.REMOVE),
        (3, change(seen(3, away=(2,)), 2, silent=SILENT_SECONDS), Do.KILL),
        (3, forget(seen(3, away=(2,)), 2), Do.REMOVE),
        (3, seen(3, first="", view=None, homes={}, known=False), Do.BEGIN),
        (3, seen(3, view=None, homes={}, known=False), Do.LAUNCH),
    ],
)
def test_the_step_towards_what_is_intended(size: int, given: Seen, do: Do) -> None:
    assert plan(size, given).do is do


@pytest.mark.parametrize("size", [1, 3, 5])
def test_a_healthy_member_is_neither_removed_nor_killed_while_another_is_down(size: int) -> None:
    for voters in (2, 3, 4, 5):
        for away in range(1, (voters + 1) // 2):
            step = plan(size, seen(voters, away=tuple(range(voters - away, voters))))
            assert step.do is Do.WAIT, (voters, away, step)
            assert "does not answer" in step.why


def test_nothing_is_changed_while_it_is_not_known_what_came_of_the_change_before() -> None:
    for given in (seen(1), seen(5), seen(2, learner="up"), forget(seen(3, away=(2,)), 2)):
        step = plan(3, msgspec.structs.replace(given, change="add a member"))
        assert step.do is Do.WAIT
        assert "add a member" in step.why


def test_nobody_votes_before_all_others_are_well() -> None:
    assert plan(5, seen(3, away=(1,), learner="up")).do is Do.WAIT


def test_the_leader_is_not_the_one_to_go() -> None:
    given = seen(3)
    assert given.view is not None
    view = msgspec.structs.replace(given.view, leader=3)
    assert plan(1, msgspec.structs.replace(given, view=view)).id == 2


def test_a_cluster_that_is_lost_is_left_to_a_person_and_never_begun_anew() -> None:
    nothing = msgspec.structs.replace(blind(seen(3)), homes={})
    wiped = change(blind(seen(1)), 0, data=False, process=0)
    for given in (nothing, wiped):
        step = plan(3, given)
        assert step.do is Do.WAIT
        assert "by hand" in step.why


def test_without_a_quorum_all_that_is_done_is_to_start_what_is_there() -> None:
    given = change(change(blind(seen(3)), 0, process=0), 1, process=0)
    assert plan(1, given).do is Do.START
    assert plan(1, blind(seen(3))).do is Do.WAIT


def test_a_member_is_added_where_nothing_of_another_is() -> None:
    given = seen(3)
    given.homes["3-former"] = Home("3-former", 3)
    assert plan(5, given).do is Do.DISCARD
    del given.homes["3-former"]
    assert plan(5, given).slot == 3
    assert plan(SLOTS + 1, seen(SLOTS)).do is Do.WAIT
