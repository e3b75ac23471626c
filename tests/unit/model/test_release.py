"""Which release counts for each asset."""

from __future__ import annotations

from lehr.base.digest import digest
from lehr.model.asset import AssetId, Partition
from lehr.model.release import NO_RELEASES, Release, ReleaseBasis, Released, ReleaseKind

A, B, C = (AssetId(id) for id in "abc")


def release(id: str, asset: AssetId, target: int | None = 1) -> Release:
    return Release(
        id=id,
        partition=Partition("shop"),
        asset=asset,
        target=target,
        kind=ReleaseKind.FORWARD,
        basis=ReleaseBasis(digest("governance")),
        at=0.0,
    )


def test_an_asset_that_was_never_released_follows_intent() -> None:
    assert NO_RELEASES.of(A) is None


def test_the_release_that_was_read_last_counts() -> None:
    first, second = release("1", A), release("2", A, 2)
    found = NO_RELEASES.updated(1, [Released(A, first), Released(B, release("3", B))])
    found = found.updated(2, [Released(A, second)])
    assert (found.version, found.of(A), len(found)) == (2, Released(A, second), 2)


def test_an_asset_whose_releases_were_all_withdrawn_is_still_governed() -> None:
    found = NO_RELEASES.updated(1, [Released(A, None)])
    assert found.of(A) == Released(A, None)


def test_an_asset_that_was_let_go_follows_intent_again() -> None:
    found = NO_RELEASES.updated(1, [Released(A, release("1", A, None))])
    assert found.of(A) is None


def test_what_has_changed_is_what_must_be_woken() -> None:
    one, two = release("1", A), release("2", B)
    before = NO_RELEASES.updated(1, [Released(A, one), Released(B, two)])
    after = before.updated(3, [Released(A, None), Released(B, two), Released(C, release("3", C, None))])
    assert after.changed_from(before) == [A, C]
    assert after.changed_from(after) == []
    assert before.changed_from(NO_RELEASES) == [A, B]
