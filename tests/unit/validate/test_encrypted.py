"""Who refers to a secret in an encrypted file names one that is there."""

from __future__ import annotations

import msgspec
import pytest

from lehr.base.diagnostics import Position
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.incarnation import AssetChange
from lehr.model.secret import Secret
from lehr.model.types import AssetType, Registry
from lehr.sdk.validator import Limits
from lehr.validate import DeltaProposal, MappingPredecessor, validate


class Account(msgspec.Struct):
    password: Secret


REGISTRY = Registry([AssetType("test.Account", Account)])


def test_a_reference_that_leads_elsewhere_has_not_gone_blank() -> None:
    def assets(secret: Secret) -> dict[AssetId, Asset]:
        ids = [AssetId(f"a{number}") for number in range(5)]
        return {id: make_asset(id, "test.Account", Account(secret), {}) for id in ids}

    before, after = assets(Secret("age:a.age", "2", "digest")), assets(Secret("env:A"))
    changes = [AssetChange(id, before[id], after[id]) for id in before]
    proposal = DeltaProposal(
        Partition("shop"), REGISTRY, Limits(), changes, MappingPredecessor(before, REGISTRY)
    )
    assert validate(proposal) == []


def found(secret: Secret) -> list[str]:
    def locate(asset: Asset, pointer: str) -> Position:
        return Position("assets/a.yaml", 4, len(pointer))

    asset = make_asset(AssetId("a"), "test.Account", Account(secret), {}, Position("assets/a.yaml", 1, 1))
    changes = [AssetChange(asset.id, None, asset)]
    proposal = DeltaProposal(
        Partition("shop"), REGISTRY, Limits(), changes, MappingPredecessor({}, REGISTRY), locate
    )
    return [f"{item.code} {item.at} {item.fix}" for item in validate(proposal)]


@pytest.mark.parametrize(
    ("reference", "command"), [("age:secrets/db.age", "lehr secret"), ("sops:p.yaml", "sops")]
)
def test_a_file_that_is_not_in_the_revision_is_named_with_its_place(reference: str, command: str) -> None:
    [said] = found(Secret(reference))
    assert said.startswith("VAL042 assets/a.yaml:4:17")
    assert command in said


@pytest.mark.parametrize("secret", [Secret("age:a.age", digest="1"), Secret("env:A"), Secret("file:/a")])
def test_files_that_are_there_and_secrets_elsewhere_are_fine(secret: Secret) -> None:
    assert found(secret) == []
