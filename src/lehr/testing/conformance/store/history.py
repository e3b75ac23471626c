"""The rules of records: decisions, standings, ledger, controls, attempts, audit."""

from __future__ import annotations

from lehr.base.diagnostics import Diagnostic, Position
from lehr.model.asset import AssetId
from lehr.model.attempt import Attempt, Publication
from lehr.model.control import AuditEntry
from lehr.model.reason import Reason
from lehr.model.writes import Adopt, Audit, LiftControl, Record, RecordAttempt, SetControl, Touch
from lehr.sdk.store import Store
from lehr.testing.conformance.holding import hold, named_plain
from lehr.testing.conformance.store.subject import (
    NOW,
    OTHER,
    PARTITION,
    Rule,
    Subject,
    commit,
    control,
    decision,
    entry,
    key,
    only,
)


@named_plain
def an_empty_store_has_no_history(subject: Subject) -> None:
    """Every question has an answer before anything was written."""
    with subject.opened() as store:
        records = store.records
        hold(records.controls(PARTITION, NOW) == (0, []), "controls begin with version 0")
        hold(records.open_operations(PARTITION) == [], "no operation is open")
        hold(records.operations(PARTITION) == [], "there are no operations")
        hold(records.ledger(key("a")) is None, "the ledger is empty")
        hold(list(records.ledgers(PARTITION)) == [], "the ledger is empty")
        hold(records.standing(key("a")) is None, "nothing stands")
        hold(list(records.standings(PARTITION)) == [], "nothing stands")
        hold(records.decisions(PARTITION) == [], "nothing was decided")
        hold(records.attempt(PARTITION) is None, "nothing was attempted")
        hold(records.audit(PARTITION) == [], "nothing was said")


@named_plain
def decisions_come_newest_first(subject: Subject) -> None:
    """By numbers that only grow, of all assets or of one, of this partition alone."""
    with subject.opened() as store:
        made = [decision("a", "One"), decision("b", "Two"), decision("a", "Three")]
        for item in made:
            commit(store, Record(item))
        commit(store, Record(decision("a", "Elsewhere", partition=OTHER)))
        found = store.records.decisions(PARTITION)
        hold([item for _, item in found] == made[::-1], "the newest decisions come first")
        numbers = [number for number, _ in found]
        hold(numbers == sorted(set(numbers), reverse=True), f"numbers only grow, not {numbers}")
        of_a = [item for _, item in store.records.decisions(PARTITION, AssetId("a"))]
        hold(of_a == [made[2], made[0]], "one asset's are its own")
        hold(store.records.decisions(PARTITION, limit=1) == found[:1], "no more than asked")
        hold(
            store.records.decisions(PARTITION, AssetId("a"), 1) == found[:1],
            "no more than asked of one asset",
        )


@named_plain
def a_standing_is_as_old_as_its_verdict(subject: Subject) -> None:
    """`since` moves when the condition's key changes, and only then."""
    with subject.opened() as store:

        def since() -> float:
            standing = store.records.standing(key("a"))
            hold(standing is not None, "what was decided stands")
            assert standing is not None
            hold(standing.key == standing.condition.key(), "a standing has its condition's key")
            return standing.since

        commit(store, Record(decision("a", "One", at=NOW)))
        hold(since() == NOW, "it stands since its decision")
        commit(store, Record(decision("a", "One", at=NOW + 5, next_at=NOW + 9)))
        hold(since() == NOW, "a decision that says the same does not make it younger")
        standing = store.records.standing(key("a"))
        hold(standing is not None and standing.condition.next_at == NOW + 9, "but it is the condition now")
        commit(store, Record(decision("a", "Two", at=NOW + 6)))
        hold(since() == NOW + 6, "another verdict stands since then")
        commit(store, Record(decision("a", "One", at=NOW + 7)))
        hold(since() == NOW + 7, "and coming back is another verdict again")


@named_plain
def a_touch_is_no_decision(subject: Subject) -> None:
    """It moves the due time of an existing standing; without one it does nothing."""
    with subject.opened() as store:
        commit(store, Touch(key("a"), decision("a").condition))
        hold(store.records.standing(key("a")) is None, "touching nothing makes nothing")
        commit(store, Record(decision("a", "One", at=NOW)))
        condition = decision("a", "One", next_at=NOW + 30).condition
        commit(store, Touch(key("a"), condition))
        standing = store.records.standing(key("a"))
        hold(standing is not None and standing.condition == condition, "the condition is the new one")
        hold(standing is not None and standing.since == NOW, "it stands as long as before")
        hold(len(store.records.decisions(PARTITION)) == 1, "no decision was recorded")


@named_plain
def standings_come_by_id(subject: Subject) -> None:
    """Of every asset that had a turn, in this partition."""
    with subject.opened() as store:
        for id in ("b", "a", "c"):
            commit(store, Record(decision(id)))
        commit(store, Record(decision("d", partition=OTHER)))
        found = [(item.asset, item.condition.reason) for item in store.records.standings(PARTITION)]
        hold(found == [(id, Reason.AS_INTENDED) for id in "abc"], f"standings come by id, not {found}")


@named_plain
def the_ledger_keeps_the_last_word(subject: Subject) -> None:
    """One entry for each asset: the last applied or adopted."""
    with subject.opened() as store:
        commit(store, Adopt(entry("b")))
        commit(store, Adopt(entry("a", content=1)))
        commit(store, Adopt(entry("a", content=2, operation="o1", at=NOW + 1)))
        last = entry("a", content=2, operation="o1", at=NOW + 1)
        hold(store.records.ledger(key("a")) == last, "a later entry replaces the earlier one")
        hold(list(store.records.ledgers(PARTITION)) == [last, entry("b")], "one entry for each asset")
        hold(store.records.ledger(key("a", OTHER)) is None, "each partition has its own")


@named_plain
def controls_stand_until_lifted_or_run_out(subject: Subject) -> None:
    """The active ones, in the order in which they were given."""
    with subject.opened() as store:
        commit(store, SetControl(control("c1")))
        commit(store, SetControl(control("c2", expires_at=NOW + 10)))
        commit(store, SetControl(control("c0", partition=OTHER)))
        hold(_standing(store, NOW) == ["c1", "c2"], "both stand")
        hold(_standing(store, NOW + 10) == ["c1"], "one runs out at its time")
        hold(commit(store, LiftControl(PARTITION, "c1", NOW)) is True, "lifting answers that it stood")
        hold(_standing(store, NOW) == ["c2"], "a lifted one does not stand")
        hold(commit(store, LiftControl(PARTITION, "c1", NOW)) is False, "it is lifted once")
        hold(commit(store, LiftControl(PARTITION, "never", NOW)) is False, "what never stood is not lifted")
        hold(commit(store, LiftControl(PARTITION, "c0", NOW)) is False, "nor what stands elsewhere")
        kept = only(store.records.controls(PARTITION, NOW)[1], "one control stands")
        hold(kept == control("c2", expires_at=NOW + 10), "a control is kept as it was given")


@named_plain
def the_version_of_controls_grows_with_every_word(subject: Subject) -> None:
    """Given or lifted: a writer that relied on an older version is refused."""
    with subject.opened() as store:
        versions = [store.records.controls(PARTITION, NOW)[0]]
        for write in (
            SetControl(control("c1")),
            SetControl(control("c2", expires_at=NOW + 10)),
            LiftControl(PARTITION, "c1", NOW),
        ):
            commit(store, write)
            versions.append(store.records.controls(PARTITION, NOW)[0])
        hold(versions == sorted(set(versions)), f"each word raises the version, not {versions}")
        hold(store.records.controls(OTHER, NOW)[0] == 0, "another partition's stays")
    with subject.opened() as store:
        hold(store.records.controls(PARTITION, NOW)[0] == versions[-1], "the version is remembered")


@named_plain
def the_last_attempt_is_kept(subject: Subject) -> None:
    """With all its diagnostics."""
    problem = Diagnostic(code="GEN001", what="no", at=Position("a.yaml", 3, 7))
    with subject.opened() as store:
        for publication, problems in ((Publication.PUBLISHED, ()), (Publication.REFUSED, (problem,))):
            attempt = Attempt(
                partition=PARTITION,
                at=NOW,
                publication=publication,
                sources=(),
                sequence=1,
                diagnostics=problems,
                seconds={"generate": 0.5},
            )
            commit(store, RecordAttempt(attempt))
            hold(store.records.attempt(PARTITION) == attempt, f"the last attempt is {attempt}")
        hold(store.intent.partitions() == [PARTITION], "a partition is known from its first attempt")


@named_plain
def commands_are_kept_for_ever(subject: Subject) -> None:
    """Newest first."""
    with subject.opened() as store:
        entries = [
            AuditEntry(at=NOW, actor="ana", command=name, arguments={"n": [1, None]}, result="ok")
            for name in ("pause", "resume")
        ]
        for item in entries:
            commit(store, Audit(PARTITION, item))
        hold(store.records.audit(PARTITION) == entries[::-1], "every command is kept")
        hold(store.records.audit(PARTITION, 1) == entries[1:], "no more than asked")
        hold(store.records.audit(OTHER) == [], "another partition has its own")


def _standing(store: Store, now: float) -> list[str]:
    return [item.id for item in store.records.controls(PARTITION, now)[1]]


RULES: tuple[Rule, ...] = (
    an_empty_store_has_no_history,
    decisions_come_newest_first,
    a_standing_is_as_old_as_its_verdict,
    a_touch_is_no_decision,
    standings_come_by_id,
    the_ledger_keeps_the_last_word,
    controls_stand_until_lifted_or_run_out,
    the_version_of_controls_grows_with_every_word,
    the_last_attempt_is_kept,
    commands_are_kept_for_ever,
)
