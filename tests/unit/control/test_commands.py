"""What commands ask for is checked before it is set: in an emergency nobody finds out later."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.base.errors import LehrError
from lehr.control.commands import require_restartable, summary
from lehr.model.asset import Partition
from lehr.model.control import Control, ControlKind
from lehr.model.selector import parse_selector


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
