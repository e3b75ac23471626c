"""The conformance suite of asset plugins finds what it claims to find."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError
from lehr.model.asset import AssetId, make_asset
from lehr.model.diff import Change, Goal, Target
from lehr.model.operation import Outcome
from lehr.model.types import AssetType, Registry
from lehr.sdk.plugin import AssetPlugin, Push, Reader
from lehr.testing.conformance.asset_plugin import (
    RULES,
    Rule,
    Subject,
    conduct,
    diffs,
    discovery,
    interruption,
    output,
    pushes,
    texts,
)
from lehr.testing.conformance.asset_plugin.interrupts import spread
from lehr.testing.plugins import FixedPush, FixedReader, push_of, target_of
from tests.unit.testing import test_simulated_conformance
from tests.unit.testing.broken_plugins import (
    SECRET,
    AnswersABatchTwice,
    BelievesItself,
    BoastsWhenOvertaken,
    CannotFollowFenced,
    ChecksOnlyAtFirst,
    ComparesManyByTheFirst,
    ComparesNothing,
    Counts,
    Discovers,
    DiscoversSomethingElse,
    EffectsOfNothing,
    Fenced,
    FencesOvertaken,
    FencesWhatItHasDone,
    FencingIsNothing,
    FindsObstaclesAlone,
    FindsOnce,
    GoesOnWithWhatItBegan,
    Good,
    KnowsEveryGoal,
    KnowsIntentByItself,
    LeavesALockWhenCancelled,
    LeavesATaskBehind,
    LocksItselfOut,
    LocksItselfOutOfFences,
    LocksOthersOut,
    MarksWhatItFinds,
    MixesUpABatch,
    NeverEnds,
    NeverHeardOfIt,
    NeverLooks,
    OverlooksCrashes,
    PushesHalf,
    PushesWhatRecovers,
    PushesWithoutIntent,
    ReadsWhenNew,
    Recovers,
    Remembers,
    RemembersInABatch,
    RetriesWhatIsDone,
    RunsAgain,
    SaysSomethingElseEachTime,
    StallsWhenOvertaken,
    Swaps,
    TellsStories,
    Value,
    WaitsForEver,
    WaitsForItsOwnPushes,
    World,
    WritesInABatch,
    WritesInDiff,
    showing,
)
from tests.unit.testing.ill_mannered_plugins import (
    BoastsInTrouble,
    CleansUpOnClose,
    HasNoTime,
    HealsByItself,
    HintsAtNames,
    HintsAtNothing,
    LogsSecrets,
    LogsSecretsWithFields,
    RaisesAnything,
    RaisesSecrets,
    ServesSomethingElse,
    ShowsSecrets,
    TellsSecrets,
    WatchRaises,
)
from tests.unit.testing.plugins_with_texts import (
    AnnouncesSomethingElse,
    Shows,
    ShowsAnotherTextEachTime,
    ShowsSecretTexts,
    ShowsTextsOfNoChange,
    ShowsWhatIsIntended,
    ShowsWhatItHides,
    WritesInTexts,
)
from tests.unit.testing.talkative_plugins import (
    CutsBeforeItHides,
    CutsTheEndBeforeItHides,
    HidesPartByPart,
    Listens,
    LogsWhatIsPrinted,
    OverlooksTrouble,
    RaisesWhatIsPrinted,
    SaysItInNotes,
    SaysItInProgress,
    ShowsEscapes,
    ShowsEverything,
    ShowsMegabytes,
    Talkative,
)

BREAKS: list[tuple[Rule, type[Good]]] = [
    (diffs.diff_never_writes, WritesInDiff),
    (diffs.diff_can_be_repeated, SaysSomethingElseEachTime),
    (diffs.diff_can_be_repeated, ReadsWhenNew),
    (diffs.many_diffs_are_those_of_one_by_one, ComparesManyByTheFirst),
    (diffs.many_diffs_are_those_of_one_by_one, MixesUpABatch),
    (diffs.many_diffs_are_those_of_one_by_one, AnswersABatchTwice),
    (diffs.many_diffs_are_those_of_one_by_one, RemembersInABatch),
    (diffs.many_diffs_are_those_of_one_by_one, WritesInABatch),
    (diffs.diff_survives_cancellation, LeavesALockWhenCancelled),
    (diffs.diffs_are_plain, showing(Change("value", "x" * 20_000, None))),
    (diffs.diffs_are_plain, showing(Change("value", b"bytes", None))),
    (diffs.diffs_are_plain, showing(Change("value", ("a", "tuple"), None))),
    (diffs.diffs_are_plain, showing(Change("value", "same", "same"))),
    (diffs.diffs_are_plain, showing(Change("value", 1, 2), Change("value", 3, 4))),
    (diffs.diffs_are_plain, showing(Change("", 1, 2))),
    (diffs.diffs_are_plain, showing(Change("/two\nlines", 1, 2))),
    (diffs.diffs_are_plain, showing(capacity=0.5)),
    (diffs.diffs_are_plain, EffectsOfNothing),
    (diffs.intent_comes_through_the_reader, KnowsIntentByItself),
    (diffs.intent_comes_through_the_reader, PushesWithoutIntent),
    (diffs.memory_is_only_a_hint, BelievesItself),
    (pushes.push_converges, NeverLooks),
    (pushes.push_converges, PushesHalf),
    (pushes.push_is_idempotent, Counts),
    (pushes.disturbance_is_seen_and_healed, Remembers),
    (pushes.overtaken_pushes_are_honest, BoastsWhenOvertaken),
    (pushes.overtaken_pushes_are_honest, StallsWhenOvertaken),
    (pushes.overtaken_pushes_are_honest, FencesWhatItHasDone),
    (pushes.messages_are_one_line, TellsStories),
    (pushes.messages_are_one_line, RetriesWhatIsDone),
    (pushes.unknown_goals_stall, KnowsEveryGoal),
    (pushes.known_goals_are_reached_and_taken_back, FencingIsNothing),
    (pushes.goals_follow_each_other, CannotFollowFenced),
    (interruption.push_survives_cancellation, LocksItselfOut),
    (interruption.turndown_survives_cancellation, LocksItselfOutOfFences),
    (interruption.push_survives_new_intent, GoesOnWithWhatItBegan),
    (interruption.push_survives_a_crash, LocksOthersOut),
    (interruption.ended_operations_change_nothing, LeavesATaskBehind),
    (interruption.ended_operations_change_nothing, RunsAgain),
    (interruption.late_writers_are_fenced_out, ChecksOnlyAtFirst),
    (interruption.late_writers_are_fenced_out, ComparesNothing),
    (interruption.finished_operations_have_ended, NeverHeardOfIt),
    (interruption.finished_operations_have_ended, NeverEnds),
    (interruption.push_survives_cancellation, NeverEnds),
    (diffs.crashes_cost_no_push, PushesWhatRecovers),
    (diffs.crashes_cost_no_push, WaitsForItsOwnPushes),
    (diffs.crashes_cost_no_push, WaitsForEver),
    (diffs.crashes_cost_no_push, OverlooksCrashes),
    (discovery.discover_never_writes, MarksWhatItFinds),
    (discovery.discover_never_writes, FindsOnce),
    (discovery.what_is_discovered_is_as_intended, DiscoversSomethingElse),
    (discovery.what_is_discovered_is_as_intended, FindsObstaclesAlone),
    (conduct.traits_say_what_is_served, ServesSomethingElse),
    (conduct.traits_say_what_is_served, HasNoTime),
    (conduct.secrets_are_not_shown, ShowsSecrets),
    (conduct.secrets_are_not_shown, TellsSecrets),
    (conduct.secrets_are_not_shown, LogsSecrets),
    (conduct.secrets_are_not_shown, LogsSecretsWithFields),
    (conduct.secrets_are_not_shown, RaisesSecrets),
    (conduct.trouble_is_named, RaisesAnything),
    (conduct.trouble_is_named, BoastsInTrouble),
    (conduct.watch_names_assets, HintsAtNames),
    (conduct.watch_names_assets, HintsAtNothing),
    (conduct.watch_names_assets, HealsByItself),
    (conduct.watch_names_assets, WatchRaises),
    (conduct.close_can_be_repeated, CleansUpOnClose),
    (output.output_of_production_is_safe_to_show, ShowsEverything),
    (output.output_of_production_is_safe_to_show, CutsBeforeItHides),
    (output.output_of_production_is_safe_to_show, CutsTheEndBeforeItHides),
    (output.output_of_production_is_safe_to_show, HidesPartByPart),
    (output.output_of_production_is_safe_to_show, ShowsEscapes),
    (output.output_of_production_is_safe_to_show, ShowsMegabytes),
    (output.output_of_production_is_safe_to_show, LogsWhatIsPrinted),
    (output.output_of_production_is_safe_to_show, SaysItInProgress),
    (output.output_of_production_is_safe_to_show, SaysItInNotes),
    (output.output_of_production_is_safe_to_show, RaisesWhatIsPrinted),
    (output.output_of_production_is_safe_to_show, OverlooksTrouble),
    (texts.texts_only_look, WritesInTexts),
    (texts.texts_only_look, ShowsAnotherTextEachTime),
    (texts.texts_show_what_a_push_changes, ShowsWhatIsIntended),
    (texts.texts_show_what_a_push_changes, AnnouncesSomethingElse),
    (texts.texts_show_what_a_push_changes, ShowsTextsOfNoChange),
    (texts.texts_show_what_a_push_changes, ShowsWhatItHides),
    (conduct.secrets_are_not_shown, ShowsSecretTexts),
]


class CountedClock(SystemClock):
    """Counts what was slept: however slow the machine is, patience ends after as many looks."""

    slept = 0.0

    def monotonic(self) -> float:
        return self.slept

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds
        await super().sleep(seconds)


def subject(make: Callable[[World], AssetPlugin]) -> Subject:
    world = Talkative()

    def disturb() -> None:
        world["a"] = "disturbed"

    @contextmanager
    def trouble() -> Iterator[None]:
        world["trouble"] = "yes"
        yield
        world.pop("trouble", None)

    return Subject(
        make=lambda: make(world),
        registry=Registry([AssetType("test.Value", Value)]),
        asset=make_asset(AssetId("value"), "test.Value", Value(f"one {SECRET}"), {}),
        changed=make_asset(AssetId("value"), "test.Value", Value(f"another {SECRET}"), {}),
        disturb=disturb,
        observe=lambda: dict(world),
        secret=SECRET,
        troubles=(trouble,),
        crash=world.crash if isinstance(make, type) and issubclass(make, Recovers) else None,
        talk=world.talk if isinstance(make, type) and issubclass(make, Listens) else None,
        query=("everything",),
        linger=0.005,
        patience=0.02,
        clock=CountedClock(),
    )


@pytest.mark.parametrize(
    "good",
    [Good, Fenced, FencesOvertaken, Swaps, Recovers, Discovers, Listens, Shows],
    ids=lambda good: good.__name__,
)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_good_plugin_keeps_every_rule(rule: Rule, good: type[Good]) -> None:
    asyncio.run(rule(subject(good)))


@pytest.mark.parametrize(("rule", "broken"), BREAKS, ids=lambda value: value.__name__)
def test_a_broken_plugin_breaks_its_rule(rule: Rule, broken: Callable[[World], AssetPlugin]) -> None:
    with pytest.raises(AssertionError, match=f"^{rule.__name__}: "):
        asyncio.run(rule(subject(broken)))


def test_every_rule_of_plugins_has_a_plugin_that_breaks_it() -> None:
    assert {rule for rule, _ in BREAKS} | {rule for _, rule in test_simulated_conformance.BREAKS} == set(
        RULES
    )


def test_a_push_is_cancelled_at_every_await() -> None:
    cancelled = []

    class Counted(Good):
        async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
            try:
                return await super().push(target, read, push)
            except asyncio.CancelledError:
                if "two" in read.payload(target.id, Value).value:
                    cancelled.append(sorted(self.world))
                raise

    held = subject(Counted)
    held.changed = make_asset(AssetId("value"), "test.Value", Value("two"), {})
    asyncio.run(interruption.push_survives_cancellation(held))
    assert cancelled == [["a", "b"], ["a"], ["a", "b"]]


@pytest.mark.parametrize(
    ("waits", "most", "expected"),
    [(100, 3, [1, 50, 100]), (100, 1, [1]), (2, 3, [1, 2, 3]), (2, None, [1, 2, 3])],
)
def test_interruptions_are_spread_evenly(waits: int, most: int | None, expected: list[int]) -> None:
    assert list(islice(spread(waits, most), 3)) == expected


def test_a_reader_records_what_it_was_asked_for() -> None:
    asset = make_asset(AssetId("a"), "test.Value", Value("x"), {})
    reader = FixedReader([asset], Registry([AssetType("test.Value", Value)]), incarnation=7)
    assert reader.payload(AssetId("a"), Value) == Value("x")
    assert reader.asset(AssetId("b")) is None
    assert reader.addon(AssetId("c"), "test.Addon", Value) is None
    with pytest.raises(StalledError, match="incarnation 7 has no asset d"):
        reader.payload(AssetId("d"), Value)
    with pytest.raises(StalledError, match="not a Target"):
        reader.payload(AssetId("a"), Target)
    assert reader.reads == ["a", "b", "c", "d", "a"]


def test_a_push_keeps_what_was_said_and_can_be_overtaken() -> None:
    target = target_of(make_asset(AssetId("a"), "test.Value", Value("x"), {}), Goal.ABSENT, incarnation=7)
    push: FixedPush = push_of(target, "op")
    push.progress("half-way")
    assert (push.operation.id, push.operation.goal, push.operation.content) == ("op", Goal.ABSENT, 7)
    assert push.messages == ["half-way"]
    assert not push.superseded
    assert push_of(target, superseded=True).superseded
