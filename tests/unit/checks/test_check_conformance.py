import asyncio
from typing import Any

import msgspec
import pytest

from lehr.base.errors import TransientError
from lehr.checks import CHECKS, TYPES
from lehr.checks.calendar import CalendarCheck
from lehr.checks.depends_on import DependsOnCheck
from lehr.checks.freeze import FreezeCheck
from lehr.checks.monitor import Monitor, MonitorCheck
from lehr.checks.rate_limit import RateLimitCheck
from lehr.model.addons import ADDONS
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.control import Control, ControlKind
from lehr.model.diff import NO_DIFF, Change, Diff, Effects
from lehr.model.monitoring import MetricHistory, Sample, after, reading_of
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


def depending(**on: Any) -> Asset:
    return make_asset(AssetId("web"), "lehr.File", None, {"lehr.DependsOn": on})


def version(observed: str) -> Diff:
    return Diff((), Effects(version_from=observed, version_to=observed))


def growing(units: int) -> Diff:
    return Diff((Change("replicas", 2 + units, 2),), Effects(capacity=units))


RULE = [{"asset": "db", "allow": "theirs.empty", "message": "db differs"}]
NEED = [{"asset": "db", "at_least": "2"}]


def subject(
    make: type[CheckPlugin],
    allows: bool | None,
    *,
    governed: bool = True,
    asset: Asset = ASSET,
    **seen: Any,
) -> Any:
    reader = FixedCheckReader(REGISTRY, **seen)
    case = Subject(make, check_request(asset, diff=growing(1)), reader, allows, governed)
    return pytest.param(case, id=f"{make.name}-{allows}")


def calendar(hour: str, id: str = "web", override: bool = False) -> Asset:
    window = {"days": ["mon"], "from": hour, "to": "23:00"}
    select = {"ids": [id]}
    return asset(
        "lehr.Calendar", {"select": select, "timezone": "UTC", "windows": [window], "override": override}
    )


RATE = asset("lehr.RateLimit", {"select": {"all": True}, "pushes": 1, "per": 60})
OVER = asset("lehr.Freeze", {"select": {"all": True}, "reason": "r", "until": "2026-01-01T00:00:00Z"})
FREEZE = asset("lehr.Freeze", {"select": {"all": True}, "reason": "r", "until": "2026-02-01T00:00:00Z"})


MONITOR = asset("lehr.Monitor", {"select": {"all": True}, "source": "a", "query": "e", "at_most": 0.05})
ERRORS = REGISTRY.payload(MONITOR, Monitor).question()


def found(value: object) -> MetricHistory:
    return after(None, reading_of(ERRORS, [Sample(value)], EPOCH))


def control(kind: ControlKind, check: str | None = None) -> Control:
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
        controls=[control(ControlKind.OVERRIDE, "some-lehr.Calendar")],
    ),
    subject(MonitorCheck, True, governing=[MONITOR], histories={ERRORS: found(0.01)}),
    subject(MonitorCheck, False, governing=[MONITOR], histories={ERRORS: found(0.5)}),
    subject(MonitorCheck, False, governing=[MONITOR], histories={ERRORS: found("none")}),
    subject(MonitorCheck, False, governing=[MONITOR]),
    subject(MonitorCheck, None),
    subject(RateLimitCheck, True, governing=[RATE]),
    subject(RateLimitCheck, False, governing=[RATE], usages={f"rate/{RATE.id}": (1, EPOCH + 9)}),
    subject(RateLimitCheck, None),
    subject(FreezeCheck, False, governing=[FREEZE], controls=[control(ControlKind.FREEZE)]),
    subject(FreezeCheck, None, governing=[OVER]),
    subject(FreezeCheck, None, controls=[control(ControlKind.PAUSE)]),
    subject(DependsOnCheck, True, governed=False, diffs={DB: NO_DIFF}),
    subject(DependsOnCheck, False, governed=False, diffs={DB: SOME_DIFF}),
    subject(DependsOnCheck, False, governed=False),
    subject(DependsOnCheck, False, governed=False, diffs={DB: TransientError("no connection")}),
    subject(DependsOnCheck, None, governed=False, asset=make_asset(AssetId("web"), "lehr.File", None, {})),
    subject(DependsOnCheck, True, governed=False, asset=depending(rules=RULE), diffs={DB: NO_DIFF}),
    subject(DependsOnCheck, False, governed=False, asset=depending(rules=RULE), diffs={DB: SOME_DIFF}),
    subject(DependsOnCheck, True, governed=False, asset=depending(versions=NEED), diffs={DB: version("2.1")}),
    subject(
        DependsOnCheck, False, governed=False, asset=depending(versions=NEED), diffs={DB: version("1.9")}
    ),
    subject(DependsOnCheck, False, governed=False, asset=depending(capacity=["db"]), diffs={DB: growing(2)}),
]


def test_every_shipped_check_allows_waits_and_is_silent_here() -> None:
    held = {(type(case.make()), case.allows) for param in SUBJECTS for case in param.values}
    every = {(check, allows) for check in CHECKS for allows in (True, False, None)}
    assert every - held == {(FreezeCheck, True)}, "add a subject for each answer; only a freeze never allows"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_checks_keep_their_contract(rule: Rule, subject: Subject) -> None:
    asyncio.run(rule(subject))
