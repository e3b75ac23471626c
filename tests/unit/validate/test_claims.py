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
from lehr.sdk.claims import Conflict, Holder
from lehr.sdk.validator import Limits
from lehr.validate import DeltaProposal, MappingPredecessor
from lehr.validate.claims import claimed_elsewhere, claimed_twice, leads_into_protected
from tests.unit.validate.proposing import missing

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
    assert not missing(found, "`a`", "file /x")


def test_a_new_asset_cannot_take_the_file_of_one_that_has_not_changed() -> None:
    (found,) = check([file("a", "/x")], [file("a", "/x"), file("b", "/x")])
    assert (found.code, found.subject) == ("VAL030", "b")
    assert not missing(found, "`a`", "`b`")


def test_a_file_may_pass_from_one_asset_to_another_in_one_change() -> None:
    assert check([file("a", "/x")], [file("a", "/y"), file("b", "/x")]) == []
    assert check([file("a", "/x")], [file("b", "/x")]) == []


def test_ports_are_claimed_for_every_replica_and_reported_once_for_a_pair() -> None:
    assert check([], [process("a", 8000, 2), process("b", 8002, 2)]) == []
    (found,) = check([], [process("a", 8000, 4), process("b", 8002, 2)])
    assert found.code == "VAL030"
    assert not missing(found, "port 8002")


# --- what others hold -----------------------------------------------------------------


def held(asset: str, claim: str, by: str, *, ours: bool = False, real: str = "") -> Conflict:
    holder = Holder(Partition("test" if ours else "blog"), "/var/lib/lehr/blog", AssetId(by), ours)
    return Conflict(AssetId(asset), claim, real or claim, holder)


def elsewhere(after: Iterable[Asset], *conflicts: Conflict) -> list[Diagnostic]:
    changes = [AssetChange(asset.id, None, asset) for asset in after]
    predecessor = MappingPredecessor({}, REGISTRY)
    proposal = DeltaProposal(Partition("test"), REGISTRY, Limits(), changes, predecessor, conflicts=conflicts)
    return list(claimed_elsewhere(proposal))


def test_what_another_partition_holds_names_partition_asset_and_state() -> None:
    (found,) = elsewhere([file("a", "/x")], held("a", "file:/x", "motd"))
    assert (found.code, found.subject) == ("VAL031", "a")
    assert not missing(found, "`a`", "file /x", "partition blog", "`motd`")
    assert not missing(found, "lehr claims --release /var/lib/lehr/blog")


def test_a_path_that_leads_elsewhere_says_where() -> None:
    (found,) = elsewhere([file("a", "x")], held("a", "file:x", "motd", real="path:/srv/x"))
    assert found.code == "VAL031"
    assert not missing(found, "file x", "/srv/x")


def test_of_many_claims_of_one_holder_the_first_is_reported() -> None:
    conflicts = [held("a", f"port:{port}", "web") for port in (8000, 8001, 8002)]
    (found,) = elsewhere([process("a", 8000, 3)], *conflicts)
    assert (found.code, found.subject) == ("VAL031", "a")
    assert not missing(found, "port 8000", "partition blog", "`web`")


def test_two_assets_with_one_file_by_two_names_are_reported_as_such() -> None:
    conflict = held("b", "file:/srv/x", "a", ours=True)
    (found,) = elsewhere([file("a", "x"), file("b", "/srv/x")], conflict)
    assert (found.code, found.subject) == ("VAL031", "b")
    assert not missing(found, "file /srv/x", "`a`")
    assert not elsewhere([file("a", "/srv/x"), file("b", "/srv/x")], conflict), "that is VAL030"


def test_what_an_asset_held_that_is_gone_is_in_nobodys_way() -> None:
    assert not elsewhere([file("b", "/x")], held("b", "file:/x", "gone", ours=True))


def test_a_path_into_a_protected_folder_is_refused_and_says_which() -> None:
    holder = Holder(Partition("test"), "/state", AssetId(""), ours=True)
    conflict = Conflict(AssetId("a"), "file:link/x", "path:/state/x", holder, "the state folder /state")
    changes = [AssetChange(AssetId("a"), None, file("a", "link/x"))]
    predecessor = MappingPredecessor({}, REGISTRY)
    proposal = DeltaProposal(
        Partition("test"), REGISTRY, Limits(), changes, predecessor, conflicts=[conflict]
    )
    assert list(claimed_elsewhere(proposal)) == []
    (found,) = leads_into_protected(proposal)
    assert (found.code, found.subject) == ("VAL032", "a")
    assert not missing(found, "file link/x", "/state/x", "the state folder /state")
