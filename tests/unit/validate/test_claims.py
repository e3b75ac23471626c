"""One thing in production belongs to one asset."""

from __future__ import annotations

from collections.abc import Iterable

from lehr.base.diagnostics import Diagnostic
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.incarnation import AssetChange
from lehr.model.types import Registry
from lehr.plugins.file.payload import FILE, File
from lehr.plugins.file.payload import TYPES as FILE_TYPES
from lehr.plugins.process.payload import PROCESS, Port, Process
from lehr.plugins.process.payload import TYPES as PROCESS_TYPES
from lehr.sdk.validator import Limits
from lehr.validate import DeltaProposal, MappingPredecessor
from lehr.validate.claims import claimed_twice

REGISTRY = Registry((*FILE_TYPES, *PROCESS_TYPES))


def file(id: str, path: str) -> Asset:
    return make_asset(AssetId(id), FILE, File(path=path, content=""), {})


def process(id: str, base: int, replicas: int) -> Asset:
    payload = Process(command=["serve"], replicas=replicas, ports=[Port(name="http", base=base)])
    return make_asset(AssetId(id), PROCESS, payload, {})


def check(before: Iterable[Asset], after: Iterable[Asset]) -> list[Diagnostic]:
    old, new = ({asset.id: asset for asset in assets} for assets in (before, after))
    changes = [AssetChange(id, old.get(id), new.get(id)) for id in sorted({*old, *new})]
    predecessor = MappingPredecessor(old, REGISTRY)
    return list(claimed_twice(DeltaProposal(Partition("test"), REGISTRY, Limits(), changes, predecessor)))


def test_two_new_assets_cannot_be_the_same_file() -> None:
    (found,) = check([], [file("a", "/x"), file("b", "/y"), file("c", "/x")])
    assert (found.code, found.subject) == ("VAL030", "c")
    assert "`a`" in found.what
    assert "file /x" in found.what


def test_a_new_asset_cannot_take_the_file_of_one_that_has_not_changed() -> None:
    (found,) = check([file("a", "/x")], [file("a", "/x"), file("b", "/x")])
    assert "`a` and `b`" in found.what


def test_a_file_may_pass_from_one_asset_to_another_in_one_change() -> None:
    assert check([file("a", "/x")], [file("a", "/y"), file("b", "/x")]) == []
    assert check([file("a", "/x")], [file("b", "/x")]) == []


def test_ports_are_claimed_for_every_replica_and_reported_once_for_a_pair() -> None:
    assert check([], [process("a", 8000, 2), process("b", 8002, 2)]) == []
    (found,) = check([], [process("a", 8000, 4), process("b", 8002, 2)])
    assert "port 8002" in found.what
