"""Every validator says what it looks at, and looks at no more."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.incarnation import AssetChange
from lehr.model.types import Mention
from lehr.sdk.validator import Limits, Scope
from lehr.validate import VALIDATORS, DeltaProposal, MappingPredecessor
from lehr.validate.validators import Validator, run
from tests.unit.validate.proposing import REGISTRY, job, jobs

SLOW_PATH: list[str] = []
"""Validators that may look at the whole set. Each that is added makes every change cost O(all)."""


class Counting(MappingPredecessor):
    """Counts what it is asked."""

    def __init__(self, assets: Iterable[Asset]) -> None:
        super().__init__({asset.id: asset for asset in assets}, REGISTRY)
        self.asked = 0

    def asset(self, id: AssetId) -> Asset | None:
        self.asked += 1
        return super().asset(id)

    def mentioned_by(self, id: AssetId) -> Iterable[tuple[Asset, Mention]]:
        self.asked += 1
        return super().mentioned_by(id)

    def claimed_by(self, claim: str) -> Iterable[AssetId]:
        self.asked += 1
        return super().claimed_by(claim)


def asked(validator: Validator, crowd: int) -> int:
    """How many single assets a validator asks for when a few of many change in all ways there are."""
    old = [job("a", region="eu", replicas=100), job("b"), job("c")]
    new = [job("a", friend="j0000"), job("b", addons=["Turndown"]), job("d", friend="a")]
    after = {asset.id: asset for asset in new}
    predecessor = Counting([*jobs(crowd, friend="c"), *old])
    ids = [AssetId(id) for id in "abcd"]
    changes = [AssetChange(id, predecessor.asset(id), after.get(id)) for id in ids]
    proposal = DeltaProposal(Partition("shop"), REGISTRY, Limits(), changes, predecessor)
    predecessor.asked = 0
    list(run([validator], proposal))
    return predecessor.asked


def name(validator: Validator) -> str:
    return validator.find.__name__


def test_what_looks_at_the_whole_set_is_listed_here() -> None:
    assert [name(item) for item in VALIDATORS if item.scope is Scope.WHOLE_SET] == SLOW_PATH


@pytest.mark.parametrize("validator", VALIDATORS, ids=name)
def test_a_validator_looks_at_no_more_than_its_scope(validator: Validator) -> None:
    few, many = (asked(validator, crowd) for crowd in (3, 300))
    if validator.scope is Scope.NEIGHBOURHOOD:
        assert many == few
    elif validator.scope is not Scope.WHOLE_SET:
        assert (few, many) == (0, 0)
