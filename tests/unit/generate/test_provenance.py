"""What is known of where generated assets come from."""

from __future__ import annotations

import msgspec

from lehr.base.digest import Digest
from lehr.generate.engine.memory import Origins
from lehr.generate.engine.records import output_of
from lehr.generate.engine.schedule import Generator
from lehr.generate.sandbox.authors import CallOutput, FoundGenerator, Record
from lehr.model.asset import Asset, AssetId
from lehr.model.origins import origin_bytes, origin_of
from lehr.model.provenance import Annotated, Derivation
from lehr.sdk.generator import Declaration, Reads
from lehr.testing.samples import registry

SERVICES = Generator("generators/a.py", FoundGenerator("f", Declaration(Reads.FILE, "services/*.yaml"), 3))
ROUTES = Generator("generators/b.py", FoundGenerator("g", Declaration(Reads.ASSETS, "sample.Service"), 3))


def record(id: str, line: int) -> Record:
    return Record(id, b'{"id": "%s", "type": "sample.Service"}' % id.encode(), None, line)


def test_what_one_call_yields_on_one_line_shares_its_derivation() -> None:
    answer = CallOutput((record("a", 5), record("b", 5), record("c", 6)))
    a, b, c = output_of(answer, SERVICES, "1", "services/x.yaml", registry()).assets
    assert a.made_by == Derivation("generators/a.py:f", 5, "file", "services/*.yaml", "services/x.yaml")
    assert b.made_by is a.made_by
    assert c.made_by is not None
    assert c.made_by.line == 6


def test_a_generator_over_all_names_no_single_item() -> None:
    answer = CallOutput((Record("a", b'{"team": "x"}', "lehr.Owner", 7),))
    [addition] = output_of(answer, ROUTES, "1", "*", registry()).additions
    assert addition.by == Derivation("generators/b.py:g", 7, "assets", "sample.Service")
    assert str(addition.at) == "generators/b.py:7"


def test_what_went_over_the_pipe_is_shared_again() -> None:
    made = [Derivation("g.py:f", 1, "file", "*.yaml", "a.yaml") for _ in range(2)]
    one, other = (Asset(AssetId("a"), "t", b"", Digest(""), None, item) for item in made)
    Origins().share((one, other))
    assert one.made_by is other.made_by


def test_generators_over_single_assets_share_their_names_alone() -> None:
    sent = [Derivation("g.py:f", 1, "asset", "t", id) for id in "ab"]
    made = [msgspec.msgpack.decode(msgspec.msgpack.encode(item), type=Derivation) for item in sent]
    assert made[0].generator is not made[1].generator
    assets = [
        Asset(AssetId(item.item), "t", b"", Digest(""), None, None, (Annotated("lehr.Owner", item),))
        for item in made
    ]
    Origins().share(assets)
    one, other = (asset.annotated_by[0].by for asset in assets)
    assert (one.item, other.item) == ("a", "b")
    assert one.generator is other.generator


def test_where_an_asset_comes_from_is_read_as_it_was_stored() -> None:
    made = Derivation("g.py:f", 1, "file", "*.yaml", "a.yaml")
    annotated = (Annotated("lehr.Owner", Derivation("g.py:h", 2, "asset", "t", "a")),)
    kept = origin_of(origin_bytes(Asset(AssetId("a"), "t", b"", Digest(""), None, made, annotated)))
    assert (kept.position, kept.made_by, kept.annotated_by) == (None, made, annotated)


def test_what_was_stored_before_there_were_derivations_is_still_read() -> None:
    kept = origin_of(b'{"file":"assets/a.yaml","line":2,"column":1}')
    assert str(kept.position) == "assets/a.yaml:2:1"
    assert kept.made_by is None
    assert origin_of(b"null").position is None
