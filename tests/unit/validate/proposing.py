"""Candidates on predecessors, for tests of validators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from lehr.base.diagnostics import Diagnostic, Position
from lehr.model.addons import ADDONS
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.evolution import Former, Step, evolution
from lehr.model.incarnation import AssetChange
from lehr.model.references import Followed
from lehr.model.types import AssetType, External, Reference, Registry, Schema
from lehr.sdk.validator import Limits
from lehr.validate import DeltaProposal, MappingPredecessor, validate

JOB, IMAGE, NOTE = "test.Job", "test.Image", "test.Note"
LETTER = "shop.Letter"


class Job(msgspec.Struct):
    """Something with numbers, texts, lists and maps in it."""

    region: str | None = None
    replicas: float = 1
    quota: float | None = None
    port: int = 80
    command: list[str] = []
    labels: dict[str, str] = {}
    backends: list[dict[str, Any]] = []
    friend: Annotated[str, Reference()] | None = None
    restart_on: list[Followed] = []


class Image(msgspec.Struct):
    """Something that is held elsewhere."""

    main: External
    others: list[External] = []


DECLARED = Schema({"type": "object"}, {}, externals=("/artefact", "/layers/*"))
RENAMED = evolution(2, [Former(1, (Step(rename={"/mail": "/address"}),))])
REGISTRY = Registry(
    (
        AssetType(JOB, Job),
        AssetType(IMAGE, Image),
        AssetType(NOTE, DECLARED, enforced=False),
        AssetType(LETTER, DECLARED, enforced=False, evolution=RENAMED),
    ),
    ADDONS,
)


def missing(found: Diagnostic, *facts: str) -> list[str]:
    """Those of `facts` that a problem does not mention. How it words them is not tested."""
    text = f"{found.what}\n{found.why}\n{found.fix}"
    return [fact for fact in facts if fact not in text]


def job(id: str, *, addons: Iterable[str] = (), **fields: Any) -> Asset:
    """A job, declared in a file of its own."""
    named = {f"lehr.{name}": {"reason": "old"} for name in addons}
    return make_asset(AssetId(id), JOB, Job(**fields), named, Position(f"assets/{id}.yaml", 1, 1))


def note(id: str, **fields: Any) -> Asset:
    """An asset of a declared type."""
    return make_asset(AssetId(id), NOTE, fields, {}, Position(f"assets/{id}.yaml", 1, 1))


def letter(id: str, version: int, **fields: Any) -> Asset:
    """An asset of a declared type, of which version 2 calls `address` what was called `mail`."""
    versions = {LETTER: version} if version > 1 else None
    return make_asset(AssetId(id), LETTER, fields, {}, versions=versions)


def jobs(count: int, **fields: Any) -> list[Asset]:
    """Jobs that differ in nothing but their ids."""
    return [job(f"j{number:04}", **fields) for number in range(count)]


def proposal(before: Iterable[Asset], after: Iterable[Asset], limits: Limits | None = None) -> DeltaProposal:
    """The candidate `after` on the predecessor `before`, which is shop@1."""
    old, new = ({asset.id: asset for asset in assets} for assets in (before, after))
    changes = [AssetChange(id, old.get(id), new.get(id)) for id in sorted({*old, *new})]
    predecessor = MappingPredecessor(old, REGISTRY)
    return DeltaProposal(Partition("shop"), REGISTRY, limits or Limits(), changes, predecessor)


def check(before: Iterable[Asset], after: Iterable[Asset], limits: Limits | None = None) -> list[Diagnostic]:
    """All that is wrong with it."""
    return validate(proposal(before, after, limits))


def codes(found: Iterable[Diagnostic]) -> list[str]:
    """The codes alone."""
    return [item.code for item in found]
