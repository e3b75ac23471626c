"""Changes, problems and questions of validators as messages, and back."""

from __future__ import annotations

import pytest

from lehr.base.diagnostics import Diagnostic, Position, Severity
from lehr.base.errors import NeedError
from lehr.model.addons import ADDONS
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.incarnation import AssetChange
from lehr.model.references import Mention
from lehr.model.types import Registry
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.given_proposal import GivenProposal
from lehr.plugins.remote.validator_wire import (
    GivenPlace,
    change_message,
    change_of,
    divided,
    findings_of,
    mentions_of,
    problem_message,
    referrers_message,
)
from lehr.plugins.remote.wire import GarbageError
from tests.codes import raises

REGISTRY = Registry((), ADDONS)


def asset(id: str = "web", text: str = "x", version: int = 1) -> Asset:
    addons = {"lehr.Labels": {"labels": {"tier": "1"}}}
    versions = {"shop.Site": version, "lehr.Labels": 3} if version > 1 else None
    return make_asset(
        AssetId(id), "shop.Site", {"text": text}, addons, Position("a.yaml", 1), versions=versions
    )


@pytest.mark.parametrize(
    ("before", "after"), [(None, asset()), (asset(), None), (asset(), asset(text="y", version=2))]
)
def test_changes_arrive(before: Asset | None, after: Asset | None) -> None:
    sent = m.AssetChange.FromString(
        change_message(AssetChange(AssetId("web"), before, after)).SerializeToString()
    )
    arrived = change_of(sent)
    for one, other in ((before, arrived.before), (after, arrived.after)):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert (other.id, other.type, other.body, other.digest) == (
                one.id,
                one.type,
                one.body,
                one.digest,
            )


def test_changes_are_divided_in_their_order_and_none_is_lost() -> None:
    changes = [AssetChange(AssetId(f"a{n}"), None, asset(f"a{n}", "x" * n * 10)) for n in range(40)]
    for most in (1, 500, 2_000, 1_000_000):
        parts = list(divided(changes, most))
        assert [item.id for part in parts for item in part] == [item.id for item in changes]
        assert all(len(part) == 1 or sum(item.ByteSize() for item in part) <= most for part in parts)
    assert len(list(divided(changes, 1_000_000))) == 1
    assert len(list(divided(changes, 1))) == 40
    assert list(divided([], 100)) == []


def test_referrers_arrive_with_all_their_references() -> None:
    web, blog = asset("web"), asset("blog")
    first, second = Mention("/payload/host", AssetId("h"), ()), Mention("/payload/other", AssetId("h"), ())
    found = [(web, first), (blog, first), (web, second)]
    arrived = mentions_of(referrers_message(AssetId("h"), found))
    assert [(item.id, mention) for item, mention in arrived] == [
        ("web", first),
        ("web", second),
        ("blog", first),
    ]


def test_problems_arrive() -> None:
    place = GivenPlace("web", asset="web", pointer="/payload/text")
    found = [
        Diagnostic(code="N001", what="a", why="b", fix="c", at=place),
        Diagnostic(code="n-2.x", what="a", subject="web", severity=Severity.WARNING),
        Diagnostic(code="N3", what="a"),
    ]
    messages = [m.Problem.FromString(problem_message(item).SerializeToString()) for item in found]
    first, second, third = findings_of(messages, {"web"}, str)
    assert (first.code, first.asset, first.pointer) == ("N001", "web", "/payload/text")
    assert (first.what, first.why, first.fix, first.severity) == ("a", "b", "c", Severity.ERROR)
    assert (second.code, second.asset, second.pointer) == ("n-2.x", "web", "")
    assert second.severity is Severity.WARNING
    assert third.asset is None


def test_a_problem_of_an_asset_that_was_not_shown_is_refused() -> None:
    message = m.Problem(code="N1", what="a", asset="blog")
    assert findings_of([message], {"blog"}, str)
    with pytest.raises(GarbageError, match="'blog'"):
        findings_of([message], {"web"}, str)


def test_what_a_proposal_lacks_is_asked_for() -> None:
    request = m.ValidateRequest(
        partition="shop",
        changes=[
            change_message(AssetChange(AssetId("web"), None, asset())),
            change_message(AssetChange(AssetId("old"), asset("old"), None)),
        ],
        size_before=7,
    )
    given = GivenProposal(request, REGISTRY)
    assert (given.partition, given.size_before(), len(list(given.changes()))) == ("shop", 7, 2)
    assert given.asset(AssetId("old")) is None
    found = given.asset(AssetId("web"))
    assert found is not None
    assert given.registry.payload(found, dict) == {"text": "x"}
    assert given.complete
    with raises("PLG163", NeedError):
        given.asset(AssetId("h"))
    with raises("PLG164", NeedError):
        given.mentioned_by(AssetId("h"))
    with raises("PLG165", NeedError):
        given.prefetch([AssetId("web"), AssetId("h2"), AssetId("h2")], [AssetId("h3")])
    assert list(given.need.assets) == ["h", "h2"]
    assert list(given.need.referrers) == ["h", "h3"]
    assert not given.complete


def test_what_was_asked_for_is_found() -> None:
    host = m.Asset(id="h", exists=True, type="shop.Host", payload=b"{}", version=2)
    referrers = referrers_message(AssetId("h"), [(asset(), Mention("/payload/host", AssetId("h"), ()))])
    request = m.ValidateRequest(assets=[host, m.Asset(id="gone")], referrers=[referrers])
    given = GivenProposal(request, REGISTRY)
    found = given.asset(AssetId("h"))
    assert found is not None
    assert (found.type, found.version("shop.Host")) == ("shop.Host", 2)
    assert given.registry.payload(found, dict) == {}
    assert given.type_of(AssetId("gone")) is None
    assert [item.id for item, _mention in given.mentioned_by(AssetId("h"))] == ["web"]
    given.prefetch([AssetId("h"), AssetId("gone")], [AssetId("h")])
    assert given.complete


def test_limits_are_not_known_there() -> None:
    with raises("PLG162"):
        _ = GivenProposal(m.ValidateRequest(), REGISTRY).limits
