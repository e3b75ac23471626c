"""What commands ask for is checked before it is set: in an emergency nobody finds out later."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.base.errors import LehrError
from lehr.checks.calendar import Calendar, Window
from lehr.checks.rate_limit import RateLimit
from lehr.control.commands import require_overridable, require_restartable, summary
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.control import Control, ControlKind
from lehr.model.selector import Selector, parse_selector


def calendar(id: str, *, override: bool) -> Asset:
    windows = (Window(("mon",), "09:00", "17:00"),)
    payload = Calendar(Selector(all=True), "UTC", windows, override)
    return make_asset(AssetId(id), "lehr.Calendar", payload, {})


OPEN, STRICT = calendar("office-hours", override=True), calendar("nights", override=False)
LIMIT = make_asset(AssetId("gentle"), "lehr.RateLimit", RateLimit(Selector(all=True), pushes=1, per=60.0), {})


def refused(check: str, *governing: Asset) -> LehrError:
    with pytest.raises(LehrError) as raised:
        require_overridable(check, governing)
    return raised.value


def test_a_check_that_says_so_can_be_overridden() -> None:
    require_overridable("office-hours", [LIMIT, STRICT, OPEN])


def test_a_check_that_is_not_there_is_refused_with_the_one_that_was_meant() -> None:
    error = refused("ofice-hours", OPEN, STRICT)
    assert error.code == "CTL114"
    assert error.fix == "did you mean `office-hours`?"
    assert refused("xyzzy", OPEN, STRICT).fix == "can be overridden: office-hours"
    assert refused("xyzzy", STRICT).fix == "no check can be overridden here"
    assert refused("xyzzy").fix == "no check can be overridden here"


@pytest.mark.parametrize("check", ["nights", "gentle"])
def test_a_check_that_cannot_be_overridden_is_refused(check: str) -> None:
    error = refused(check, LIMIT, OPEN, STRICT)
    assert error.code == "CTL115"
    assert check in error.what
    assert error.fix.startswith("can be overridden: office-hours;")


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        (ControlKind.FREEZE, {}, "freeze set on 4 assets (id=web/*)"),
        (ControlKind.PIN, {"incarnation": 3}, "pin to incarnation 3 set on 4 assets (id=web/*)"),
        (
            ControlKind.OVERRIDE,
            {"check": "office-hours", "expires_at": 7200.0},
            "override of office-hours set on 4 assets (id=web/*) until 1970-01-01T02:00:00Z",
        ),
    ],
)
def test_the_answer_names_what_was_set_on_what_and_until_when(
    kind: ControlKind, fields: dict[str, Any], expected: str
) -> None:
    control = Control(
        id="c1",
        kind=kind,
        partition=Partition("shop"),
        selector=parse_selector("web/*"),
        reason="because",
        actor="ana",
        at=0.0,
        **fields,
    )
    assert summary(control, "4 assets") == expected


@pytest.mark.parametrize(
    "selector", ["web/*", "type=lehr.Process", "all", "id=a,id=b", "label:team=web,id=a"]
)
def test_a_restart_is_for_one_asset(selector: str) -> None:
    with pytest.raises(LehrError) as raised:
        require_restartable(parse_selector(selector), restarts=True)
    assert raised.value.code == "CTL137"


def test_what_cannot_be_restarted_is_refused() -> None:
    require_restartable(parse_selector("web/process"), restarts=True)
    with pytest.raises(LehrError) as raised:
        require_restartable(parse_selector("motd"), restarts=False)
    assert raised.value.code == "CTL138"


def test_the_answer_to_a_restart_names_what_it_waits_for() -> None:
    asked = Control(
        id="c1",
        kind=ControlKind.RESTART,
        partition=Partition("shop"),
        selector=parse_selector("web/process"),
        reason="leaks",
        actor="ana",
        at=0.0,
        expires_at=3600.0,
    )
    assert summary(asked, "1 asset") == (
        "web/process will be restarted as soon as its checks allow it, "
        "if that is before 1970-01-01T01:00:00Z; see `lehr why web/process`"
    )
