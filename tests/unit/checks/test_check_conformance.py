import asyncio
from typing import Any

import msgspec
import pytest

from lehr.checks import TYPES
from lehr.checks.calendar import CalendarCheck
from lehr.checks.depends_on import DependsOnCheck
from lehr.checks.freeze import FreezeCheck
from lehr.checks.rate_limit import RateLimitCheck
from lehr.model.addons import ADDONS
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.control import Control, ControlKind
from lehr.model.diff import NO_DIFF
from lehr.model.selector import Selector
from lehr.model.types import Registry
from lehr.sdk.check import CheckPlugin
from lehr.testing.checks import SOME_DIFF, FixedCheckReader, check_request
from lehr.testing.conformance.check_plugin import RULES, Rule, Subject
from lehr.testing.virtual import EPOCH

REGISTRY = Registry(TYPES, ADDONS)
ASSET = make_asset(AssetId("web"), "lehr.File", None, {"lehr.DependsOn": {"assets": ["db"]}})
DB, WEB = AssetId("db"), Selector(ids=("web",))


def asset(type: str, payload: dict[str, Any]) -> Asset:
    value = msgspec.convert(payload, REGISTRY.types[type].payload)
    return make_asset(AssetId(f"some-{type}"), type, value, {})


def subject(make: type[CheckPlugin], allows: bool | None, *, governed: bool = True, **seen: Any) -> Any:
    reader = FixedCheckReader(REGISTRY, **seen)
    case = Subject(make, check_request(ASSET), reader, allows, governed)
    return pytest.param(case, id=f"{make.name}-{allows}")


def calendar(hour: str, id: str = "web", override: bool = False) -> Asset:
    window = {"days": ["mon"], "from": hour, "to": "23:00"}
    select = {"ids": [id]}
    return asset(
        "lehr.Calendar", {"select": select, "timezone": "UTC", "windows": [window], "override": override}
    )


RATE = asset("lehr.RateLimit", {"select": {"all": True}, "pushes": 1, "per": 60})
FREEZE = asset("lehr.Freeze", {"select": {"all": True}, "reason": "r", "until": "2026-02-01T00:00:00Z"})


def spoken(kind: ControlKind, check: str | None = None) -> Control:
    return Control(
        id="c1",
        kind=kind,
        partition=Partition("test"),
        selector=WEB,
        reason="r",
        actor="mira",
        at=0.0,
        expires_at=EPOCH + 60,
        check=AssetId(check) if check else None,
    )


SUBJECTS = [
    subject(CalendarCheck, True, governing=[calendar("00:00")]),
    subject(CalendarCheck, False, governing=[calendar("08:00")]),
    subject(CalendarCheck, None, governing=[calendar("08:00", "other")]),
    subject(
        CalendarCheck,
        True,
        governing=[calendar("08:00", override=True)],
        controls=[spoken(ControlKind.OVERRIDE, "some-lehr.Calendar")],
    ),
    subject(RateLimitCheck, True, governing=[RATE]),
    subject(RateLimitCheck, False, governing=[RATE], usages={f"rate/{RATE.id}": (1, EPOCH + 9)}),
    subject(RateLimitCheck, None),
    subject(FreezeCheck, False, governing=[FREEZE], controls=[spoken(ControlKind.FREEZE)]),
    subject(FreezeCheck, None, controls=[spoken(ControlKind.PAUSE)]),
    subject(DependsOnCheck, True, governed=False, diffs={DB: NO_DIFF}),
    subject(DependsOnCheck, False, governed=False, diffs={DB: SOME_DIFF}),
    subject(DependsOnCheck, False, governed=False),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_checks_keep_their_contract(rule: Rule, subject: Subject) -> None:
    asyncio.run(rule(subject))
