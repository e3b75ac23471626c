"""The rules of pruning: what is not needed goes, and what is needed stays as it was."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lehr.model.asset import AssetId
from lehr.model.control import AuditEntry, ControlKind
from lehr.model.decision import Reservation, Status
from lehr.model.diff import Goal
from lehr.model.operation import DONE
from lehr.model.reason import Reason
from lehr.model.writes import Adopt, Audit, Prune, Pruned, RecordDecision, SetControl
from lehr.sdk.store import PrunedError, Store
from lehr.testing.conformance.rules import hold, raises
from lehr.testing.conformance.store.subject import (
    NOW,
    PARTITION,
    RULES,
    admitted,
    asset,
    commit,
    contents,
    control,
    decision,
    entry,
    finish,
    key,
    published,
    refusal,
    request,
)

_DAY = 86_400.0
_LATER = NOW + 100 * _DAY
_ADDON = "test.Addon"


def _pruned(store: Store, keep: int = 1, before: float = _LATER, most: int = 1) -> Pruned:
    """Prune to the end, in shares of `most` rows."""
    total = Pruned(rest=Prune(PARTITION, keep, before, most))
    while total.rest is not None:
        share = commit(store, total.rest)
        hold(isinstance(share, Pruned), f"pruning answers what is gone, not {share}")
        total = total.plus(share)
    return total


def _days(store: Store, count: int) -> None:
    """Incarnations 1 to `count`, a day apart, each with another version of `a`; `b` comes with the first."""
    for day in range(1, count + 1):
        new = [asset("b", "1")] if day == 1 else []
        published(
            store, day - 1, asset("a", str(day)), *new, at=NOW + day * _DAY, mentions={"a": [f"x{day}"]}
        )


def _kept(store: Store) -> list[int]:
    return [item.sequence for item in store.intent.incarnations(PARTITION, 1000)][::-1]


def _pin(store: Store, id: str, incarnation: int, *, expires_at: float | None = None) -> object:
    said = replace(control(id, ControlKind.PIN, expires_at=expires_at), incarnation=incarnation)
    return commit(store, SetControl(said))


@RULES.opened
def what_nobody_needs_is_pruned(store: Store) -> None:
    """Its assets can no longer be read, and readers are notified; its header stays."""
    _days(store, 6)
    headers = [store.intent.incarnation(PARTITION, sequence) for sequence in range(1, 7)]
    gone = _pruned(store, keep=2)
    hold(_kept(store) == [5, 6], f"the newest two are kept, not {_kept(store)}")
    hold((gone.incarnations, gone.versions) == (4, 4), f"four are gone, not {gone}")
    found = [store.intent.incarnation(PARTITION, sequence) for sequence in range(1, 7)]
    hold(found == headers, "headers stay")
    for ask in (
        lambda: store.intent.asset(key("a"), 3),
        lambda: store.intent.asset(key("b"), 3),
        lambda: store.intent.asset(key("never"), 3),
        lambda: contents(store, 3),
        lambda: list(store.intent.changes(PARTITION, 3, 5)),
        lambda: store.intent.require_kept(PARTITION, 3),
    ):
        with raises(PrunedError, "what is pruned cannot be read") as caught:
            ask()
        hold(f"{PARTITION}@5" in caught[0].why, "the error names the oldest that is kept")
    hold(store.intent.past_and_present_referrers(key("x3")) == [], "what it referred to is forgotten")
    hold(
        store.intent.past_and_present_referrers(key("x6")) == [AssetId("a")],
        "but not what is referred to now",
    )
    hold(
        store.intent.past_and_present_referrers(key("x5")) == [AssetId("a")],
        "nor what a version that is kept refers to",
    )
    hold(published(store, 6, asset("a", "7")).sequence == 7, "publishing continues")


@RULES.opened
def reads_that_were_given_up_hold_back_no_others(store: Store) -> None:
    """One that is not continued, or whose error is kept, does not keep later ones in the past."""
    _days(store, 3)
    _pruned(store, keep=1)
    given_up = store.intent.assets(PARTITION, 3)
    next(given_up)
    with raises(PrunedError, "what is pruned cannot be read") as kept:
        list(store.intent.changes(PARTITION, 1, 3))
    published(store, 3, asset("a", "4"))
    found = store.intent.newest(PARTITION)
    hold(found is not None and found.sequence == 4, f"the newest incarnation is 4, not {found}")
    del given_up, kept


@RULES.opened
def what_is_kept_reads_as_before(store: Store) -> None:
    """Every incarnation that is kept, every difference between two, however few are left between them."""
    published(store, 0, asset("a", "1"), asset("b", "1"), asset("c", "1"))
    published(store, 1, asset("a", "2"), removals=["b"])
    published(store, 2, asset("b", "3"), asset("a", "3"))
    published(store, 3, asset("a", "4"), removals=["c"])
    published(store, 4, asset("c", "5"), removals=["b"])
    published(store, 5, asset("a", "1"), removals=["c"])
    published(store, 6, asset("d", "1"), removals=["a"])
    for sequence, ends in ((1, 10), (2, 10), (5, 20)):
        _pin(store, f"p{sequence}", sequence, expires_at=NOW + ends)
    for moment, kept in ((1, [1, 2, 5, 7]), (15, [5, 7]), (25, [7])):
        before = _everything(store, kept)
        _pruned(store, before=NOW + moment)
        hold(_kept(store) == kept, f"{kept} are kept, not {_kept(store)}")
        hold(_everything(store, kept) == before, "what is kept reads as before")


def _everything(store: Store, sequences: Sequence[int]) -> list[object]:
    whole = [contents(store, sequence) for sequence in sequences]
    single = [[store.intent.asset(key(id), sequence) for id in "abcd"] for sequence in sequences]
    pairs = [(one, other) for one in (0, *sequences) for other in (0, *sequences)]
    return [whole, single, [list(store.intent.changes(PARTITION, *pair)) for pair in pairs]]


@RULES.opened
def what_is_young_stays(store: Store) -> None:
    """Only what is older than asked for goes; and never what is among the newest."""
    _days(store, 6)
    _pruned(store, keep=1, before=NOW + 3 * _DAY)
    hold(_kept(store) == [3, 4, 5, 6], f"what is younger stays, not only {_kept(store)}")
    _pruned(store, keep=3)
    hold(_kept(store) == [4, 5, 6], f"the newest three stay, not only {_kept(store)}")
    _pruned(store, keep=0)
    hold(_kept(store) == [6], f"the newest stays whatever is asked for, not {_kept(store)}")


@RULES.opened
def what_is_pinned_stays(store: Store) -> None:
    """While the pin is active, and for as long again as nothing else may go."""
    _days(store, 6)
    _pin(store, "p1", 2)
    _pin(store, "p2", 4, expires_at=NOW + 50 * _DAY)
    _pruned(store, before=NOW + 40 * _DAY)
    hold(_kept(store) == [2, 4, 6], f"pins keep 2 and 4, not {_kept(store)}")
    _pruned(store, before=NOW + 60 * _DAY)
    hold(_kept(store) == [2, 6], f"a pin that has run out keeps nothing: {_kept(store)}")


@RULES.opened
def what_is_applied_stays(store: Store) -> None:
    """The incarnation that production's content came from, until it is out of production."""
    _days(store, 5)
    store.commit([Adopt(entry("a", content=3)), Adopt(entry("b", content=1))])
    _pruned(store)
    hold(_kept(store) == [1, 3, 5], f"what is applied stays: 1 and 3, not {_kept(store)}")
    published(store, 5, removals=["b"])
    removed = replace(entry("b", content=1), goal=Goal.ABSENT)
    store.commit([Adopt(removed), Adopt(entry("a", content=5))])
    _pruned(store)
    hold(_kept(store) == [5, 6], f"what is not in production any more keeps nothing: {_kept(store)}")


@RULES.governed
def what_is_under_way_stays(store: Store) -> None:
    """The incarnations that an open push has read, its own record and its decision."""
    published(store, 1, asset("x", "1"))
    pushing = replace(decision("a", Reason.PUSHING), operation="o1")
    admitted(store, request(store, "o1", decision=pushing))
    published(store, 2, asset("x", "2"))
    commit(store, RecordDecision(decision("a", "Later")))
    _pruned(store)
    hold(_kept(store) == [1, 3], f"what a push has read stays, not {_kept(store)}")
    hold([item.id for item in store.records.open_operations(PARTITION)] == ["o1"], "the push stays")
    found = [item.operation for _, item in store.records.decisions(PARTITION)]
    hold("o1" in found, "and so does its decision")
    commit(store, finish("o1", DONE))
    _pruned(store)
    hold(_kept(store) == [3], f"when it has ended, nothing keeps them: {_kept(store)}")


@RULES.opened
def the_last_to_hold_what_is_not_turned_down_stays(store: Store) -> None:
    """Taking an asset out of production requires knowing what it was, and what it read."""
    _days(store, 4)
    published(store, 4, removals=["b"])
    published(store, 5, asset("a", "6"))
    commit(store, RecordDecision(decision("b")))
    _pruned(store)
    hold(_kept(store) == [4, 6], f"4 is the last that holds `b`, and stays: {_kept(store)}")
    last = store.intent.last(key("b"))
    hold(last == (asset("b", "1"), 1), f"its last version is known, not {last}")
    hold(store.intent.next_change(key("b"), 1) == 5, "and when it went")
    done = decision("b", Reason.REMOVED)
    turned_down = replace(done.condition, status=Status.TURNED_DOWN)
    commit(store, RecordDecision(replace(done, condition=turned_down)))
    _pruned(store)
    hold(_kept(store) == [6], f"once it is turned down, nothing keeps it: {_kept(store)}")
    hold(store.intent.last(key("b")) is None, "then its versions go as well")


@RULES.opened
def a_pin_to_what_is_pruned_is_refused(store: Store) -> None:
    """It would hold an asset at unreadable content."""
    _days(store, 3)
    _pruned(store)
    refusal(_pin(store, "p1", 2), Reason.PRUNED, "it is refused")
    hold(store.records.controls(PARTITION, NOW) == (0, []), "and nothing is written")
    hold(_pin(store, "p2", 3) is None, "what is kept can be pinned to")


@RULES.governed
def old_records_are_pruned(store: Store) -> None:
    """Decisions and pushes that are not the last of their asset; never the record of people's commands."""
    for number in (1, 2, 3):
        admitted(store, request(store, f"o{number}", at=NOW + number))
        applied = entry("a", operation="o1") if number == 1 else None
        commit(store, finish(f"o{number}", DONE, at=NOW + number, ledger=applied))
        commit(store, RecordDecision(decision("a", f"Turn{number}", at=NOW + number)))
    commit(store, RecordDecision(decision("b", "Once", at=NOW)))
    said = AuditEntry(at=NOW, actor="ana", command="pause", arguments={}, result="ok")
    store.commit([Audit(PARTITION, said), SetControl(control("c1", expires_at=NOW + 1))])
    _pruned(store, before=NOW + 2)
    reasons = {item.condition.reason for _, item in store.records.decisions(PARTITION)}
    hold(reasons == {"Turn2", "Turn3", "Once"}, f"only Turn1 is old enough: {reasons}")
    gone = _pruned(store)
    reasons = {item.condition.reason for _, item in store.records.decisions(PARTITION)}
    hold(reasons == {"Turn3", "Once"}, f"each asset's last decision stays, not {reasons}")
    pushes = [item.id for item in store.records.operations(PARTITION)]
    hold(pushes == ["o3", "o1"], f"the last push and what was applied stay, not {pushes}")
    hold((gone.decisions, gone.operations) == (1, 1), f"one of each is gone, not {gone}")
    hold([entry for _number, entry in store.records.audit(PARTITION)] == [said], "audit entries stay forever")
    hold(store.records.standing(key("a")) is not None, "and so do current decisions")


@RULES.opened
def a_pruned_version_vouches_for_no_addon(store: Store) -> None:
    """Whether the addon was there all the time is no longer known: its dependents wait longer, not less."""
    for sequence, has in enumerate((True, False, True)):
        version = asset("a", str(sequence), {_ADDON: {}} if has else {})
        published(store, sequence, version, at=NOW + sequence)
    _pin(store, "p1", 1)
    _pruned(store)
    hold(_kept(store) == [1, 3], f"1 and 3 are kept, not {_kept(store)}")
    since = store.intent.addon_since(key("a"), _ADDON)
    hold(since == NOW + 2, f"it dates from {NOW + 2}, not {since}")
    published(store, 3, asset("a", "4", {_ADDON: {}}), at=NOW + 3)
    hold(store.intent.addon_since(key("a"), _ADDON) == NOW + 2, "and keeps its date")


@RULES.governed
def what_would_be_pruned_is_told(store: Store) -> None:
    """Exactly, and without doing it."""
    for sequence in range(1, 6):
        published(store, sequence, asset("a", f"v{sequence}"), removals=["b"] if sequence == 2 else [])
        commit(store, RecordDecision(decision("a", f"Turn{sequence}")))
    _pin(store, "p1", 3)
    told = store.records.prunable(Prune(PARTITION, 1, _LATER))
    hold(_kept(store) == [1, 2, 3, 4, 5, 6], "asking removes nothing")
    done = _pruned(store, most=1000)
    hold(told == done, f"the preview equals the result: {told}, {done}")


@RULES.governed
def shares_that_were_over_long_ago_are_pruned(store: Store) -> None:
    """Also of a limit that is no longer asked about; the pushes that took them can go then."""
    gone, left = Reservation("gone", 9, 60.0), Reservation("left", 9, 200 * _DAY)
    for number, limit in enumerate((gone, gone, gone, left, left)):
        admitted(store, request(store, f"o{number}", reservations=(limit,)))
        commit(store, finish(f"o{number}", DONE))
    hold(store.records.usage(gone, NOW)[0] == 3, "three shares of the limit were taken")
    expected = Pruned(operations=3)
    wanted = Prune(PARTITION, 1, _LATER, 2)
    told = replace(store.records.prunable(wanted), entries=0)
    hold(told == expected, "three pushes can go, and those with a share stay")
    found = _pruned(store, most=2)
    hold(replace(found, entries=0) == expected, f"three are gone, not {found}")
    hold(store.records.usage(gone, NOW)[0] == 0, "shares that are over go")
    hold(store.records.usage(left, NOW)[0] == 2, "shares that count stay")
