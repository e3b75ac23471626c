"""The rules of intent: incarnations are stored whole, numbered, and never change."""

from __future__ import annotations

from msgspec.structs import replace

from lehr.model.asset import AssetId
from lehr.model.incarnation import Acknowledgement, Incarnation
from lehr.model.merkle import incarnation_digest
from lehr.model.reason import Reason
from lehr.model.writes import Refused, TakeLease
from lehr.sdk.store import Span, Store
from lehr.testing.conformance.rules import hold, raises
from lehr.testing.conformance.store.subject import (
    NOW,
    OTHER,
    PARTITION,
    RULE,
    RULES,
    THING,
    Subject,
    asset,
    commit,
    contents,
    key,
    publication,
    published,
    refusal,
)

_ADDON = "test.Addon"
_IDS = ("a", "a-b", "a/b", "a/b/c", "a0", "aB", "b", "c/a")

_SPANS = (
    Span(ids=frozenset(("a/b", "c/a", "none"))),
    Span(ids=frozenset()),
    Span(prefix="a/"),
    Span(prefix="none"),
    Span(prefix="é%_"),
    Span(after="a/b"),
    Span(after="zz"),
    Span(prefix="a", after="a-b"),
    Span(frozenset(("a", "a/b", "b")), "a", "a"),
)


@RULES.opened
def an_empty_store_knows_nothing(store: Store) -> None:
    """Every question has an answer before anything was written."""
    intent = store.intent
    hold(intent.partitions() == [], "no partition is known")
    hold(intent.newest(PARTITION) is None, "there is no newest incarnation")
    hold(intent.incarnation(PARTITION, 1) is None, "there is no incarnation 1")
    hold(intent.incarnations(PARTITION, 10) == [], "there are no incarnations")
    hold(intent.asset(key("a"), 1) is None, "there is no asset")
    hold(intent.last(key("a")) is None, "there is no last version")
    hold(contents(store, 0) == [], "incarnation 0 is empty")
    hold(list(intent.heads(PARTITION)) == [], "there are no heads")
    hold(intent.mentioned_by(key("a")) == [], "nothing refers to anything")
    hold(intent.addon_since(key("a"), _ADDON) is None, "no addon is recorded")


@RULES
def what_was_committed_outlives_the_process(subject: Subject) -> None:
    """Opened again, the store knows what it knew."""
    with subject.opened() as store:
        first = published(store, 0, asset("a", "1"))
    with subject.opened() as store:
        hold(store.intent.newest(PARTITION) == first, "an incarnation is there after opening again")
        hold(contents(store, 1) == [asset("a", "1")], "and so are its assets")


@RULES.opened
def a_commit_is_whole_or_not_at_all(store: Store) -> None:
    """When one write fails, none was written, and the store continues."""
    published(store, 0, asset("a", "1"))
    broken = [TakeLease(PARTITION, "one", NOW), publication(1, asset("b", "1")), object()]
    with raises(Exception, "what cannot be written raises"):
        store.commit(broken)  # type: ignore[arg-type]
    newest = store.intent.newest(PARTITION)
    hold(newest is not None and newest.sequence == 1, "a commit that raised has written nothing")
    hold(store.intent.asset(key("b"), 2) is None, "not an asset either")
    hold(commit(store, TakeLease(PARTITION, "one", NOW)) == 1, "not a lease either")
    published(store, 1, asset("b", "1"))


@RULES.opened
def answers_come_in_the_order_of_the_writes(store: Store) -> None:
    """One answer for each write; a later write sees the earlier ones; a refusal stops nothing."""
    answers = store.commit(
        [
            TakeLease(PARTITION, "one", NOW),
            publication(0, asset("a", "1")),
            publication(0, asset("a", "2")),
            publication(1, asset("a", "3")),
            TakeLease(PARTITION, "one", NOW),
        ]
    )
    first, one, overtaken, two, second = answers
    hold((first, second) == (1, 2), "leases are answered in order")
    hold(isinstance(one, Incarnation) and one.sequence == 1, "the first candidate is published")
    hold(isinstance(overtaken, Refused), "the second is over an old base")
    hold(
        isinstance(two, Incarnation) and two.sequence == 2,
        "the third continues, whatever happened to the second",
    )
    hold(store.commit([]) == [], "no writes, no answers")


@RULES.opened
def publishing_compares_the_base(store: Store) -> None:
    """A candidate over anything but the newest incarnation is refused and leaves no trace."""
    published(store, 0, asset("a", "1"))
    for base in (0, 2):
        answer = commit(store, publication(base, asset("a", "2"), asset("b", "1")))
        refusal(answer, Reason.OVERTAKEN, f"a candidate over {base} is refused while 1 is the newest")
    hold(contents(store, 1) == [asset("a", "1")], "a refused candidate writes nothing")
    hold(published(store, 1, asset("b", "1")).sequence == 2, "incarnations are numbered without gaps")


@RULES.opened
def headers_say_what_an_incarnation_is(store: Store) -> None:
    """Counts, sources, time; the newest first."""
    published(store, 0, asset("a", "1"), asset("b", "1"))
    second = published(store, 1, asset("a", "2"), asset("c", "1"), removals=["b"], at=NOW + 5)
    counts = (second.assets, second.added, second.changed, second.removed)
    hold(counts == (2, 1, 1, 1), f"assets, added, changed, removed are (2, 1, 1, 1), not {counts}")
    hold(second.created_at == NOW + 5, "its time is the publication's")
    meant = Acknowledgement("VAL021", PARTITION, "p@2", "a region closes")
    write = publication(2, asset("d", "1"))
    write = replace(write, candidate=replace(write.candidate, types={THING: 3}, acknowledged=(meant,)))
    third = commit(store, write)
    hold(
        isinstance(third, Incarnation) and (third.types, third.acknowledged) == ({THING: 3}, (meant,)),
        "it keeps the candidate's numbers of assets by type, and what was acknowledged",
    )
    hold(second.sources == publication(1).candidate.sources, "it names its sources' revisions")
    hold(store.intent.incarnation(PARTITION, 2) == second, "the header is stored as it was answered")
    hold(
        [item.sequence for item in store.intent.incarnations(PARTITION, 10)] == [3, 2, 1],
        "headers come newest first",
    )
    hold([item.sequence for item in store.intent.incarnations(PARTITION, 1)] == [3], "no more than asked")
    hold([item.sequence for item in store.intent.incarnations(PARTITION, 10, 3)] == [2, 1], "only older ones")
    hold(store.intent.incarnations(PARTITION, 10, 1) == [], "nothing is older than the first")


@RULES.opened
def past_incarnations_never_change(store: Store) -> None:
    """Invariant I2: whatever comes later, an incarnation reads as on its first day."""
    published(store, 0, asset("b", "1"), asset("a", "1"))
    published(store, 1, asset("a", "2"), asset("c", "1"))
    published(store, 2, removals=["a", "b"])
    published(store, 3, asset("a", "3"))
    expected = [
        [],
        [asset("a", "1"), asset("b", "1")],
        [asset("a", "2"), asset("b", "1"), asset("c", "1")],
        [asset("c", "1")],
        [asset("a", "3"), asset("c", "1")],
    ]
    for sequence, assets in enumerate(expected):
        hold(contents(store, sequence) == assets, f"incarnation {sequence} holds {assets}, by id")
        found = [store.intent.asset(key(id), sequence) for id in "abc"]
        by_id = {item.id: item for item in assets}
        hold(
            found == [by_id.get(AssetId(id)) for id in "abc"],
            f"single reads of incarnation {sequence} agree",
        )


@RULES.opened
def digests_can_be_recomputed(store: Store) -> None:
    """Invariant I2: a header's digest follows from the incarnation's assets alone."""
    published(store, 0, *(asset(f"a{number}", "1") for number in range(20)))
    published(store, 1, asset("a3", "2"), asset("z", "1"), removals=["a4", "a5"])
    published(store, 2, removals=["z"])
    for header in store.intent.incarnations(PARTITION, 10):
        pairs = [(item.id, item.digest) for item in contents(store, header.sequence)]
        hold(header.digest == incarnation_digest(pairs), f"the digest of {header.name} is its assets'")
        hold(header.assets == len(pairs), f"{header.name} counts its assets")


@RULES.opened
def equal_contents_have_equal_digests(store: Store) -> None:
    """Whatever was added and removed before, in any order."""
    first = published(store, 0, asset("a", "1"), asset("b", "1"))
    published(store, 1, asset("a", "2"), asset("c", "1"), removals=["b"])
    back = published(store, 2, asset("b", "1"), asset("a", "1"), removals=["c"])
    hold(back.digest == first.digest, "the same assets have the same digest")
    other = published(store, 0, asset("b", "1"), asset("a", "1"), partition=OTHER)
    hold(other.digest == first.digest, "in another partition too")


@RULES.opened
def governance_is_of_governing_assets_alone(store: Store) -> None:
    """It changes exactly when one of them is added, removed or changed."""
    none = published(store, 0, asset("a", "1"))
    some = published(store, 1, asset("rule", "1", type=RULE))
    same = published(store, 2, asset("a", "2"))
    other = published(store, 3, asset("rule", "2", type=RULE))
    gone = published(store, 4, removals=["rule"])
    hold(some.governance != none.governance, "a governing asset that came changes it")
    hold(same.governance == some.governance, "an asset that does not govern leaves it alone")
    hold(other.governance != some.governance, "a governing asset that changed changes it")
    hold(gone.governance == none.governance, "without it all is as before")


@RULES.opened
def the_last_version_outlives_a_removal(store: Store) -> None:
    """`last` answers for assets that intent let go of, with the sequence they last came with."""
    published(store, 0, asset("a", "1"))
    published(store, 1, asset("a", "2"))
    published(store, 2, asset("b", "1"))
    hold(store.intent.last(key("a")) == (asset("a", "2"), 2), "the last version came with 2")
    published(store, 3, removals=["a"])
    hold(store.intent.asset(key("a"), 4) is None, "a removed asset is not in the incarnation")
    hold(store.intent.last(key("a")) == (asset("a", "2"), 2), "its last version is not a tombstone")


@RULES.opened
def the_next_change_is_found(store: Store) -> None:
    """Of an asset after an incarnation: another version, or its end; not what others do, nor what was."""
    published(store, 0, asset("a", "1"), asset("b", "1"))
    published(store, 1, asset("b", "2"))
    published(store, 2, asset("a", "2"), asset("b", "3"))
    published(store, 3, removals=["a"])
    published(store, 4, asset("b", "4"))
    found = [store.intent.next_change(key("a"), sequence) for sequence in range(6)]
    hold(found == [1, 3, 3, 4, None, None], f"a changes with 1, 3 and 4, not {found}")
    hold(store.intent.next_change(key("a", OTHER), 0) is None, "another partition has its own")
    hold(store.intent.next_change(key("never"), 0) is None, "what never was never changes")


@RULES.opened
def types_select(store: Store) -> None:
    """Assets of some types, by id, in the newest incarnation and in past ones."""
    things = (asset("a", "1"), asset("c", "1", type="test.Other"), asset("d", "1"))
    published(store, 0, *things, asset("b", "1", type=RULE))
    published(store, 1, asset("d", "2"))
    for sequence in (1, 2):
        everything = sorted(contents(store, sequence), key=lambda item: item.id)
        for types in ([THING], [THING, RULE], [RULE, THING, RULE], ["test.None"], []):
            found = list(store.intent.assets(PARTITION, sequence, types))
            hold(
                found == [item for item in everything if item.type in types],
                f"assets of {types} in incarnation {sequence} come by id, each once",
            )


@RULES.opened
def heads_are_of_the_newest_incarnation(store: Store) -> None:
    """Id, type and digest; all, or those of some ids that exist."""
    published(store, 0, asset("a", "1"), asset("b", "1"))
    published(store, 1, asset("b", "2"), removals=["a"])
    expected = asset("b", "2")
    for heads in (
        list(store.intent.heads(PARTITION)),
        list(store.intent.heads(PARTITION, [AssetId("a"), AssetId("b"), AssetId("x")])),
    ):
        found = [(head.id, head.type, head.digest) for head in heads]
        hold(found == [("b", THING, expected.digest)], f"the only head is b, not {found}")
    hold(list(store.intent.heads(PARTITION, [])) == [], "no ids, no heads")


@RULES.opened
def changes_go_both_ways(store: Store) -> None:
    """How two incarnations differ, by id, forth and back; an asset that ends as it began does not count."""
    published(store, 0, asset("b", "1"), asset("a", "1"), asset("d", "1"))
    published(store, 1, asset("a", "2"), asset("c", "1"), asset("d", "2"))
    published(store, 2, asset("d", "1"), removals=["b"])
    forth = [
        (AssetId("a"), asset("a", "1"), asset("a", "2")),
        (AssetId("b"), asset("b", "1"), None),
        (AssetId("c"), None, asset("c", "1")),
    ]
    found = [(item.id, item.before, item.after) for item in store.intent.changes(PARTITION, 1, 3)]
    hold(found == forth, f"from 1 to 3 {forth} changed, not {found}")
    back = [(item.id, item.after, item.before) for item in store.intent.changes(PARTITION, 3, 1)]
    hold(back == forth, "back is the same with before and after exchanged")
    hold(list(store.intent.changes(PARTITION, 2, 2)) == [], "an incarnation does not differ from itself")
    everything = [item.after for item in store.intent.changes(PARTITION, 0, 3)]
    hold(everything == contents(store, 3), "against the empty one everything was added")


@RULES.opened
def mentions_follow_the_newest_incarnation(store: Store) -> None:
    """Who refers to an asset now: by source and path, whether or not the asset exists."""
    published(store, 0, asset("a", "1"), asset("b", "1"), mentions={"a": ["x", "b"], "b": ["x"]})
    both = [(AssetId("a"), "/payload/0"), (AssetId("b"), "/payload/0")]
    found = store.intent.mentioned_by(key("x"))
    hold([tuple(pair) for pair in found] == both, f"{both} refer to x, not {found}")
    published(store, 1, asset("a", "2"), mentions={"a": ["b"]})
    hold([tuple(pair) for pair in store.intent.mentioned_by(key("x"))] == both[1:], "a changed its mind")
    published(store, 2, removals=["b"])
    hold(store.intent.mentioned_by(key("x")) == [], "who was removed refers to nothing")
    hold(len(store.intent.mentioned_by(key("b"))) == 1, "what was removed can still be referred to")


@RULES.opened
def mentions_of_the_past_are_remembered(store: Store) -> None:
    """Who ever referred to an asset, each once, by id."""
    hold(store.intent.past_and_present_referrers(key("x")) == [], "nothing ever referred to it")
    published(store, 0, asset("b", "1"), asset("a", "1"), mentions={"a": ["x", "x"], "b": ["x"]})
    published(store, 1, asset("a", "2"), removals=["b"], mentions={"a": ["y"]})
    published(store, 2, asset("c", "1"), mentions={"c": ["x"]})
    found = store.intent.past_and_present_referrers(key("x"))
    hold(found == ["a", "b", "c"], f"a, b and c once referred to x, not {found}")


@RULES.opened
def claims_follow_the_newest_incarnation(store: Store) -> None:
    """Who claims a thing in production now, by id."""

    def claimed(name: str) -> list[AssetId]:
        return store.intent.claimed_by(PARTITION, name)

    both = {"b": ["port:80"], "a": ["port:80", "file:/x"]}
    published(store, 0, asset("a", "1"), asset("b", "1"), claims=both)
    hold(claimed("port:80") == ["a", "b"], "both claim the port")
    hold(claimed("port") == [], "a claim is its whole name")
    hold(store.intent.claimed_by(OTHER, "port:80") == [], "claims stay within a partition")
    published(store, 1, asset("a", "2"), claims={"a": ["file:/x"]})
    hold(claimed("port:80") == ["b"], "a claims it no more")
    hold(claimed("file:/x") == ["a"], "and still claims the file")
    published(store, 2, removals=["b"])
    hold(claimed("port:80") == [], "who was removed claims nothing")


@RULES.opened
def an_addon_stands_since_it_came(store: Store) -> None:
    """Since the first of the versions that had it without a break; tombstones break nothing."""
    addon: dict[str, dict[str, str]] = {_ADDON: {}}

    def since() -> float | None:
        return store.intent.addon_since(key("a"), _ADDON)

    published(store, 0, asset("a", "1"), at=NOW)
    hold(since() is None, "no addon, no time")
    published(store, 1, asset("a", "2", addon), at=NOW + 1)
    published(store, 2, asset("a", "3", addon), at=NOW + 2)
    published(store, 3, asset("b", "1", {"test.Else": {}}), at=NOW + 3)
    hold(since() == NOW + 1, "it dates from the version that added it")
    published(store, 4, removals=["a"], at=NOW + 4)
    hold(since() == NOW + 1, "an asset that left intent left with its addon")
    published(store, 5, asset("a", "4", addon), at=NOW + 5)
    hold(since() == NOW + 1, "and came back with it")
    published(store, 6, asset("a", "5"), at=NOW + 6)
    hold(since() is None, "a version without it ends it")
    published(store, 7, asset("a", "6", addon), at=NOW + 7)
    hold(since() == NOW + 7, "after a break it counts again from zero")


@RULES.opened
def partitions_do_not_see_each_other(store: Store) -> None:
    """Ids are unique in a partition; sequences count in it."""
    published(store, 0, asset("a", "1"), mentions={"a": ["b"]})
    published(store, 0, asset("a", "2"), partition=OTHER)
    hold(store.intent.partitions() == [PARTITION, OTHER], "both partitions are known, by name")
    hold(contents(store, 1) == [asset("a", "1")], "one holds its own")
    hold(contents(store, 1, OTHER) == [asset("a", "2")], "and the other too")
    hold(store.intent.mentioned_by(key("b", OTHER)) == [], "references stay within a partition")
    hold(commit(store, TakeLease(PARTITION, "one", NOW)) == 1, "each has leases of its own")
    hold(commit(store, TakeLease(OTHER, "one", NOW)) == 1, "counted on their own")


@RULES.opened
def spans_select(store: Store) -> None:
    """Assets of a span, by id, with or without types, in the newest incarnation and in past ones."""
    made = [asset(id, type=RULE if id.endswith("b") else THING) for id in _IDS]
    published(store, 0, *made)
    published(store, 1, asset("a", "2"), removals=["c/a"])
    for sequence in (1, 2):
        everything = list(store.intent.assets(PARTITION, sequence))
        for span in _SPANS:
            for types in (None, [THING], [THING, RULE]):
                found = [item.id for item in store.intent.assets(PARTITION, sequence, types, span)]
                expected = [
                    item.id
                    for item in everything
                    if (types is None or item.type in types)
                    and (span.ids is None or item.id in span.ids)
                    and item.id.startswith(span.prefix)
                    and item.id > span.after
                ]
                hold(found == expected, f"{span} selects {expected} of {types}, not {found}")


@RULES.opened
def rows_are_the_assets(store: Store) -> None:
    """Rows are assets with nothing left out: the same, in the same order, of the same span and types."""
    published(store, 0, *map(asset, _IDS))
    published(store, 1, asset("a", "2"), removals=["c/a"])
    for asked in ((PARTITION, 1), (PARTITION, 2), (PARTITION, 2, [THING], Span(prefix="a/"))):
        made = [row.asset() for row in store.intent.rows(*asked)]
        hold(made == list(store.intent.assets(*asked)), f"rows{asked} become its assets, not {made}")
