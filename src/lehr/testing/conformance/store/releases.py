"""The rules of releases: written by compare-and-swap, ordered by the store, and part of admission's basis."""

from __future__ import annotations

from msgspec.structs import replace

from lehr.model.asset import AssetId
from lehr.model.reason import Reason
from lehr.model.release import Release, Released, ReleaseKind
from lehr.model.writes import Prune
from lehr.sdk.store import Store
from lehr.testing.conformance.rules import hold
from lehr.testing.conformance.store.subject import (
    NOW,
    OTHER,
    PARTITION,
    RULE,
    RULES,
    Subject,
    admitted,
    asset,
    commit,
    contents,
    governed,
    key,
    published,
    refusal,
    refused,
    release,
    released,
    releasing,
    request,
)

_YEAR = 365 * 86_400.0


def _counts(store: Store, asset: str) -> Release | None:
    """The release that counts for an asset that was released."""
    _version, found = store.records.released(PARTITION)
    of_asset = [item.release for item in found if item.asset == asset]
    hold(len(of_asset) == 1, f"{asset} is listed once, not {len(of_asset)} times")
    return of_asset[0]


@RULES.governed
def releases_have_a_version_of_their_own(store: Store) -> None:
    """It is raised by each write, and shows what has changed since; controls do not raise it."""
    hold(store.records.released(PARTITION) == (0, []), "releases begin with version 0")
    one, two = release("1", "b"), release("2", "a")
    released(store, one, two)
    hold(
        store.records.released(PARTITION) == (1, [Released(AssetId("a"), two), Released(AssetId("b"), one)]),
        "the first write makes version 1, and releases are listed by asset",
    )
    three = release("3", "a", 1)
    released(store, three)
    hold(
        store.records.released(PARTITION, 1) == (2, [Released(AssetId("a"), three)]),
        "what has changed since a version is listed, and nothing else",
    )
    hold(store.records.released(PARTITION, 2) == (2, []), "nothing has changed since the newest version")
    hold(store.records.released(OTHER) == (0, []), "another partition has its own")


@RULES
def releases_outlive_the_process(subject: Subject) -> None:
    """Invariant: I12. Whole, as they were written."""
    made = release("1", "a", kind=ReleaseKind.PERSON)
    with subject.opened() as store:
        governed(store)
        released(store, made)
    with subject.opened() as store:
        hold(_counts(store, "a") == made, "a release is as it was written")


@RULES.governed
def a_release_rests_on_what_its_writer_saw(store: Store) -> None:
    """Of two that decide at the same time, one does: no limit of a rollout is exceeded (I10)."""
    mine, theirs = releasing(store, release("1", "a")), releasing(store, release("2", "b"))
    hold(commit(store, mine) is None, "the first is written")
    refusal(commit(store, theirs), Reason.RELEASES_CHANGED, "the second is refused")
    hold(store.records.released(PARTITION)[0] == 1, "a refusal changes no version")
    hold(store.records.releases(key("b")) == [], "a refusal releases nothing")
    before = releasing(store, release("3", "b"))
    published(store, 1, asset("rule", "2", type=RULE))
    refusal(commit(store, before), Reason.GOVERNANCE_CHANGED, "a tightened policy counts at once")
    withdrawing = replace(before, releases=(), withdrawn=("1",))
    refusal(commit(store, withdrawing), Reason.GOVERNANCE_CHANGED, "also where something is withdrawn")
    hold(_counts(store, "a") is not None, "a refusal withdraws nothing")


@RULES.governed
def releases_are_written_together_or_not_at_all(store: Store) -> None:
    """One that names what is not there takes the others with it."""
    released(store, release("1", "a"))
    both = releasing(store, release("2", "a"), release("3", "b", 2), withdrawn=["1"])
    refusal(commit(store, both), Reason.PRUNED, "an incarnation that is not there is refused")
    hold(_counts(store, "a") == release("1", "a"), "nothing is withdrawn")
    hold(store.records.releases(key("b")) == [], "nothing is released")


@RULES.governed
def the_newest_release_counts(store: Store) -> None:
    """By the order of writing: a clock that was ahead makes no release newer."""
    published(store, 1, asset("a", "2"))
    released(store, release("9", "a", 2, at=NOW + 1000))
    released(store, release("1", "a", 1, kind=ReleaseKind.ROLLBACK, at=NOW))
    hold(
        _counts(store, "a") == release("1", "a", 1, kind=ReleaseKind.ROLLBACK), "the one written last counts"
    )
    listed = [item.id for item in store.records.releases(key("a"))]
    hold(listed == ["1", "9"], f"an asset's releases are listed newest first, not {listed}")
    hold(len(store.records.releases(key("a"), 1)) == 1, "no more than asked")


@RULES.governed
def a_withdrawn_release_does_not_count(store: Store) -> None:
    """The one before it does, and none if all were withdrawn: the asset is still governed."""
    released(store, release("1", "a"), release("2", "b"))
    released(store, release("3", "a"))
    released(store, withdrawn=["3"], at=NOW + 5)
    hold(_counts(store, "a") == release("1", "a"), "the one before counts again")
    newest = store.records.releases(key("a"))[0]
    hold(newest == replace(release("3", "a"), withdrawn_at=NOW + 5), "it is kept, with its end")
    released(store, withdrawn=["1", "3", "no such release"], at=NOW + 6)
    hold(_counts(store, "a") is None, "none counts")
    hold(store.records.releases(key("a"))[0].withdrawn_at == NOW + 5, "it was withdrawn once")
    hold(_counts(store, "b") == release("2", "b"), "others are as before")


@RULES.governed
def changed_releases_refuse_pushes_of_their_assets(store: Store) -> None:
    """A release that was written or withdrawn since, of the asset or of one that its verdicts rest on."""
    released(store, release("1", "a"), release("2", "b"))
    asked = request(store, "o1")
    resting = replace(asked, basis=replace(asked.basis, others=(AssetId("b"),)))
    released(store, release("3", "c"))
    released(store, withdrawn=["2"])
    refused(store, resting, Reason.RELEASES_CHANGED)
    released(store, withdrawn=["1"])
    refused(store, asked, Reason.RELEASES_CHANGED)
    asked = request(store, "o2")
    released(store, release("4", "a"))
    refused(store, asked, Reason.RELEASES_CHANGED)


@RULES.governed
def releases_of_other_assets_do_not_refuse(store: Store) -> None:
    """A wave of a thousand refuses the push of no asset outside it."""
    released(store, release("1", "b"))
    asked = request(store, "o1")
    released(store, release("2", "b"), release("3", "c"), withdrawn=["1"])
    admitted(store, asked)


@RULES.governed
def released_incarnations_are_kept(store: Store) -> None:
    """Those of the release that counts, and of the one before it, where a rollback goes; no others."""
    for base in range(1, 6):
        published(store, base, asset("a", str(base + 1)))
    for sequence in (1, 2, 3, 4):
        released(store, release(str(sequence), "a", sequence))
    write: Prune | None = Prune(PARTITION, keep=1, before=NOW + _YEAR)
    while write is not None:
        write = commit(store, write).rest
    kept = [item.sequence for item in store.intent.incarnations(PARTITION, 10)]
    hold(kept == [6, 4, 3], f"the newest, the released and the one before it are kept, not {kept}")
    ids = [item.id for item in store.records.releases(key("a"))]
    hold(ids == ["4", "3"], f"releases that were replaced long ago are removed, not {ids}")
    refusal(commit(store, releasing(store, release("5", "a", 1))), Reason.PRUNED, "a pruned one is refused")
    released(store, withdrawn=["4"])
    hold(_counts(store, "a") == release("3", "a", 3), "the one before counts again, and can be read")
    hold(len(contents(store, 3)) == 4, "its incarnation can be read")


@RULES.governed
def what_counts_after_withdrawals_is_kept(store: Store) -> None:
    """The release that counts, and the one before it, stay although later ones were withdrawn recently."""
    for base in range(1, 6):
        published(store, base, asset("a", str(base + 1)))
    for sequence in (1, 2, 3, 4, 5):
        released(store, release(str(sequence), "a", sequence))
    released(store, withdrawn=["3", "4", "5"], at=NOW + 10)
    write: Prune | None = Prune(PARTITION, keep=1, before=NOW + 5)
    while write is not None:
        write = commit(store, write).rest
    hold(_counts(store, "a") == release("2", "a", 2), "the release that counts is kept")
    hold(len(contents(store, 2)) == 4, "its incarnation can be read")
    released(store, withdrawn=["2"], at=NOW + 20)
    hold(_counts(store, "a") == release("1", "a", 1), "the one before it is kept")


@RULES.governed
def pruning_leaves_an_asset_governed(store: Store) -> None:
    """Its newest release stays, even if it was withdrawn long ago: without any, it would follow intent."""
    released(store, release("1", "a"))
    released(store, withdrawn=["1"])
    write: Prune | None = Prune(PARTITION, keep=1, before=NOW + _YEAR)
    while write is not None:
        write = commit(store, write).rest
    hold(_counts(store, "a") is None, "it is still known to be governed")
