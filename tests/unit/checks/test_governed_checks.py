"""Freeze, calendar and rate limit: what their configuration means."""

import asyncio
import datetime as dt
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.checks import CHECKS, TYPES
from lehr.checks.calendar import Calendar, CalendarCheck
from lehr.checks.freeze import Freeze, FreezeCheck
from lehr.checks.rate_limit import RateLimit, RateLimitCheck
from lehr.model.addons import ADDONS
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Reservation, Verdict
from lehr.model.operation import Purpose
from lehr.model.reason import Reason
from lehr.model.selector import Selector
from lehr.model.types import Registry
from lehr.sdk.check import CheckPlugin
from lehr.testing.checks import FixedCheckReader, check_request

REGISTRY = Registry(TYPES, ADDONS)
MONDAY_8 = dt.datetime.fromisoformat("2026-01-05T08:00+00:00").timestamp()


def governing(id: str, type: str, payload: dict[str, Any], **addons: Any) -> Asset:
    """An asset as generation makes it: decoded into its type, every default spelt out."""
    value = msgspec.convert(payload, REGISTRY.types[type].payload)
    return make_asset(AssetId(id), type, value, {f"lehr.{name}": item for name, item in addons.items()})


def web(id: str = "web/a", payload: Any = None, **addons: Any) -> Asset:
    return make_asset(
        AssetId(id), "lehr.File", payload, {f"lehr.{name}": item for name, item in addons.items()}
    )


def control(kind: ControlKind, **fields: Any) -> Control:
    standard: dict[str, Any] = {
        "id": "c1",
        "partition": Partition("test"),
        "selector": Selector(ids=("web/*",)),
        "reason": "pagers ring",
        "actor": "mira",
        "at": 0.0,
    }
    return Control(kind=kind, **(standard | fields))


def ask(
    plugin: CheckPlugin,
    *assets: Asset,
    asset: Asset | None = None,
    now: float = MONDAY_8,
    purpose: Purpose = Purpose.FORWARD,
    **seen: Any,
) -> list[Verdict]:
    reader = FixedCheckReader(REGISTRY, governing=assets, **seen)
    request = msgspec.structs.replace(check_request(asset or web(), now=now), purpose=purpose)
    return asyncio.run(plugin.check(request, reader))


WEB = {"ids": ["web/*"]}
NINE_TO_FIVE = {"days": ["mon", "tue"], "from": "09:00", "to": "17:00"}


def calendar(id: str = "office-hours", **fields: Any) -> Asset:
    standard = {"select": WEB, "timezone": "UTC", "windows": [NINE_TO_FIVE]}
    return governing(id, "lehr.Calendar", standard | fields)


def test_a_calendar_waits_outside_its_windows_and_says_until_when() -> None:
    (verdict,) = ask(CalendarCheck(), calendar())
    assert (verdict.allow, verdict.check, verdict.reason) == (
        False,
        "calendar/office-hours",
        Reason.OUTSIDE_WINDOW,
    )
    assert verdict.until == MONDAY_8 + 3600
    assert verdict.message == "office-hours is closed until mon 2026-01-05 09:00 (UTC)"


def test_a_calendar_allows_inside_its_windows() -> None:
    assert ask(CalendarCheck(), calendar(), now=MONDAY_8 + 3600) == [Verdict("calendar/office-hours", True)]
    assert not ask(CalendarCheck(), calendar(), now=MONDAY_8 + 9 * 3600)[0].allow


def test_every_calendar_that_selects_an_asset_has_its_say() -> None:
    verdicts = ask(
        CalendarCheck(),
        calendar("a", windows=[{**NINE_TO_FIVE, "from": "07:00"}]),
        calendar("b"),
        calendar("c", select={"types": ["lehr.Process"]}),
    )
    assert [(verdict.check, verdict.allow) for verdict in verdicts] == [
        ("calendar/a", True),
        ("calendar/b", False),
    ]


@pytest.mark.parametrize(
    ("window", "inside", "outside"),
    [
        ({"days": ["fri"], "from": "22:00", "to": "06:00"}, "2026-01-10T05:59Z", "2026-01-10T06:00Z"),
        ({"days": ["sun"], "from": "22:00", "to": "06:00"}, "2026-01-05T00:00Z", "2026-01-04T05:00Z"),
        ({"days": ["sun"], "from": "22:00", "to": "24:00"}, "2026-01-04T23:59Z", "2026-01-05T00:00Z"),
        ({"days": ["sun"], "from": "22:00", "to": "00:00"}, "2026-01-04T23:59Z", "2026-01-05T00:00Z"),
        ({"days": ["mon"], "from": "00:00", "to": "24:00"}, "2026-01-05T00:00Z", "2026-01-06T00:00Z"),
    ],
)
def test_windows_may_cross_midnight(window: dict[str, Any], inside: str, outside: str) -> None:
    for text, allowed in ((inside, True), (outside, False)):
        now = dt.datetime.fromisoformat(text).timestamp()
        assert ask(CalendarCheck(), calendar(windows=[window]), now=now)[0].allow is allowed


def test_a_calendar_says_why_it_is_closed() -> None:
    sale = {"from": "2026-01-05T00:00", "to": "2026-01-05T12:00", "reason": "spring sale"}
    (verdict,) = ask(CalendarCheck(), calendar(closed=[sale]), now=MONDAY_8 + 2 * 3600)
    assert (verdict.allow, verdict.reason) == (False, Reason.OUTSIDE_WINDOW)
    assert verdict.until == MONDAY_8 + 4 * 3600
    assert verdict.message == "office-hours is closed until mon 2026-01-05 12:00 (UTC): spring sale"


@pytest.mark.parametrize("purpose", Purpose)
def test_a_closed_calendar_delays_everything_but_rollbacks(purpose: Purpose) -> None:
    (verdict,) = ask(CalendarCheck(), calendar(), purpose=purpose)
    assert verdict.allow is (purpose is Purpose.ROLLBACK)


def test_a_rollback_needs_no_override() -> None:
    plugin, purpose = CalendarCheck(), Purpose.ROLLBACK
    (verdict,) = ask(plugin, calendar(override=True), purpose=purpose, controls=[override()])
    assert (verdict.allow, verdict.overridden) == (True, None)


def override(**fields: Any) -> Control:
    return control(ControlKind.OVERRIDE, **({"check": AssetId("office-hours")} | fields))


def test_an_override_lets_a_push_through_where_the_calendar_allows_overrides() -> None:
    (verdict,) = ask(CalendarCheck(), calendar(override=True), controls=[override()])
    assert (verdict.allow, verdict.overridden, verdict.reason) == (True, "c1", Reason.OVERRIDDEN)
    assert "mira" in verdict.message
    assert "pagers ring" in verdict.message


def test_an_override_is_not_used_while_the_calendar_is_open() -> None:
    (verdict,) = ask(CalendarCheck(), calendar(override=True), controls=[override()], now=MONDAY_8 + 3600)
    assert verdict.overridden is None


def test_a_calendar_that_allows_no_override_says_so() -> None:
    (verdict,) = ask(CalendarCheck(), calendar(), controls=[override()])
    assert not verdict.allow
    assert "override c1 by mira does not apply here" in verdict.message
    assert "no override is allowed by office-hours" in verdict.unblock


@pytest.mark.parametrize(
    "other",
    [
        {"check": AssetId("another")},
        {"check": None},
        {"selector": Selector(ids=("db/*",))},
        {"expires_at": MONDAY_8},
        {"partition": Partition("elsewhere")},
    ],
)
def test_an_override_counts_for_its_calendar_its_assets_and_its_time_only(other: dict[str, Any]) -> None:
    (verdict,) = ask(CalendarCheck(), calendar(override=True), controls=[override(**other)])
    assert not verdict.allow


def limit(id: str = "gentle", **fields: Any) -> Asset:
    return governing(id, "lehr.RateLimit", {"select": WEB, "pushes": 2, "per": "10m"} | fields)


def test_a_rate_limit_with_room_allows_and_proposes_a_reservation() -> None:
    (verdict,) = ask(RateLimitCheck(), limit(), usages={"rate/gentle": (1, MONDAY_8 + 5)})
    assert verdict == Verdict("rate/gentle", True, reservations=(Reservation("rate/gentle", 2, 600.0),))


@pytest.mark.parametrize("used", [2, 3])
def test_a_rate_limit_without_room_waits_until_the_oldest_push_no_longer_counts(used: int) -> None:
    (verdict,) = ask(RateLimitCheck(), limit(), usages={"rate/gentle": (used, MONDAY_8 + 5)})
    assert (verdict.allow, verdict.reason, verdict.until) == (False, Reason.RATE_LIMITED, MONDAY_8 + 5)
    assert verdict.message == "gentle allows 2 pushes per 10m; the limit is used up"


@pytest.mark.parametrize("purpose", Purpose)
def test_a_used_up_rate_limit_delays_everything_but_rollbacks(purpose: Purpose) -> None:
    (verdict,) = ask(RateLimitCheck(), limit(), usages={"rate/gentle": (2, None)}, purpose=purpose)
    assert verdict.allow is (purpose is Purpose.ROLLBACK)


def test_a_rollback_takes_no_share_of_a_rate_limit() -> None:
    (verdict,) = ask(RateLimitCheck(), limit(), purpose=Purpose.ROLLBACK)
    assert (verdict.allow, verdict.reservations) == (True, ())


def key(group_by: list[str], asset: Asset) -> str:
    (verdict,) = ask(RateLimitCheck(), limit(group_by=group_by, select={"all": True}), asset=asset)
    return verdict.reservations[0].key


@pytest.mark.parametrize(
    ("group_by", "expected"),
    [
        ([], "rate/gentle"),
        (["type"], "rate/gentle?type=lehr.File"),
        (["id"], "rate/gentle?id=web/a"),
        (["label:team"], "rate/gentle?team=a%26b"),
        (["label:absent"], "rate/gentle?absent="),
        (["/addons/lehr.Owner/team"], "rate/gentle?/addons/lehr.Owner/team=search"),
        (["/payload/hosts/1"], "rate/gentle?/payload/hosts/1=two"),
        (["/payload/hosts/7"], "rate/gentle?/payload/hosts/7="),
        (["/payload/a~1b"], "rate/gentle?/payload/a~1b=3"),
        (["/payload/hosts/0/deeper"], "rate/gentle?/payload/hosts/0/deeper="),
        (["type", "label:team"], "rate/gentle?type=lehr.File&team=a%26b"),
    ],
)
def test_a_rate_limit_counts_by_group(group_by: list[str], expected: str) -> None:
    asset = web(
        payload={"hosts": ["one", "two"], "a/b": 3},
        Labels={"labels": {"team": "a&b"}},
        Owner={"team": "search", "contact": ""},
    )
    assert key(group_by, asset) == expected


@pytest.mark.parametrize("value", [0, False, [], {}, 0.0])
def test_a_value_that_is_nothing_much_is_a_group_of_its_own(value: object) -> None:
    group_by = ["/payload/shard"]
    assert key(group_by, web(payload={"shard": value})) != key(group_by, web(payload={}))


@given(st.tuples(st.text(), st.text()), st.tuples(st.text(), st.text()))
def test_two_groups_never_share_a_count(one: tuple[str, str], other: tuple[str, str]) -> None:
    keys = [
        key(["label:x", "label:y"], web(Labels={"labels": {"x": values[0], "y": values[1]}}))
        for values in (one, other)
    ]
    assert (keys[0] == keys[1]) == (one == other)


@pytest.mark.parametrize(
    ("per", "window"), [(30, 30), (0.5, 0.5), ("30s", 30), ("10m", 600), ("1h30m", 5400), ("1d", 86400)]
)
def test_per_is_seconds_or_text(per: float | str, window: float) -> None:
    assert RateLimit(Selector(all=True), 1, per).window() == window


def freeze(id: str = "holidays", **fields: Any) -> Asset:
    return governing(
        id,
        "lehr.Freeze",
        {"select": WEB, "reason": "nobody is here"} | fields,
        Owner={"team": "sre", "contact": ""},
    )


def test_a_declared_freeze_waits_and_says_who_why_and_until_when() -> None:
    (verdict,) = ask(FreezeCheck(), freeze(until="2026-01-05T10:00:00+01:00"))
    assert (verdict.allow, verdict.check, verdict.reason) == (False, "freeze/holidays", Reason.FROZEN)
    assert verdict.message == "frozen by holidays of sre: nobody is here"
    assert verdict.until == MONDAY_8 + 3600


def test_a_declared_freeze_ends_at_its_time() -> None:
    assert ask(FreezeCheck(), freeze(until="2026-01-05T09:00:00+01:00")) == []
    assert ask(FreezeCheck(), freeze())[0].until is None


def test_a_spoken_freeze_waits_and_says_who_why_and_until_when() -> None:
    (verdict,) = ask(FreezeCheck(), controls=[control(ControlKind.FREEZE, expires_at=MONDAY_8 + 60)])
    assert (verdict.allow, verdict.check, verdict.until) == (False, "freeze/c1", MONDAY_8 + 60)
    assert verdict.message == "frozen by mira: pagers ring"
    assert "lehr unfreeze 'id=web/*'" in verdict.unblock


def test_other_controls_and_freezes_of_other_assets_freeze_nothing() -> None:
    others = [control(ControlKind.PAUSE), control(ControlKind.FREEZE, selector=Selector(ids=("db/*",)))]
    assert ask(FreezeCheck(), freeze(select={"ids": ["db/*"]}), controls=others) == []


@pytest.mark.parametrize(
    ("kind", "fields", "says"),
    [
        (Calendar, {"timezone": "Europe/Berlni"}, "did you mean Europe/Berlin"),
        (Calendar, {"timezone": "europe/berlin"}, "did you mean Europe/Berlin"),
        (Calendar, {"timezone": "berlin"}, "did you mean Europe/Berlin"),
        (Calendar, {"timezone": "Europe"}, "unknown time zone"),
        (Calendar, {"timezone": "../../etc/passwd"}, "use an IANA name"),
        (Calendar, {"timezone": ""}, "use an IANA name"),
        (Calendar, {"windows": []}, "use a lehr.Freeze"),
        (Calendar, {"windows": [{**NINE_TO_FIVE, "days": []}]}, "never opens"),
        (Calendar, {"windows": [{**NINE_TO_FIVE, "days": ["monday"]}]}, "'monday'"),
        (Calendar, {"windows": [{**NINE_TO_FIVE, "from": "17:00"}]}, "a whole day is 00:00 to 24:00"),
        (Calendar, {"windows": [{**NINE_TO_FIVE, "from": "9:00"}]}, "write HH:MM"),
        (Calendar, {"windows": [{**NINE_TO_FIVE, "to": "24:30"}]}, "write HH:MM"),
        (Calendar, {"windows": [{**NINE_TO_FIVE, "from": "24:00"}]}, "cannot begin at 24:00"),
        (Calendar, {"select": {}}, "empty selector"),
        (Calendar, {"overide": True}, "unknown field `overide`"),
        (RateLimit, {"pushes": 0}, ">= 1"),
        (RateLimit, {"per": "ten minutes"}, "such as 30s, 10m"),
        (RateLimit, {"per": "0m"}, "must be positive"),
        (RateLimit, {"per": -1}, "must be positive"),
        (RateLimit, {"group_by": ["team"]}, "use type, id, label:KEY"),
        (RateLimit, {"group_by": ["label:"]}, "use type, id, label:KEY"),
        (Freeze, {"reason": ""}, ">= 1"),
        (Freeze, {"until": "2026-12-27T08:00:00"}, "timezone"),
        (Freeze, {"until": "tomorrow"}, "RFC3339"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_way_out(
    kind: type[msgspec.Struct], fields: dict[str, Any], says: str
) -> None:
    good: dict[type, dict[str, Any]] = {
        Calendar: {"select": WEB, "timezone": "UTC", "windows": [NINE_TO_FIVE]},
        RateLimit: {"select": WEB, "pushes": 1, "per": "10m"},
        Freeze: {"select": WEB, "reason": "nobody is here"},
    }
    with pytest.raises(msgspec.ValidationError, match=says):
        msgspec.convert(good[kind] | fields, kind)
    msgspec.convert(good[kind], kind)


def test_a_change_of_the_configuration_holds_at_once() -> None:
    plugin = CalendarCheck()
    assert not ask(plugin, calendar())[0].allow
    assert ask(plugin, calendar(windows=[{**NINE_TO_FIVE, "from": "08:00"}]))[0].allow
    assert ask(plugin) == []


def test_configurations_that_were_replaced_are_forgotten() -> None:
    plugin = RateLimitCheck()
    for pushes in range(1, 50):
        ask(plugin, limit(pushes=pushes))
    assert len(plugin._limits._prepared) <= 4


def test_every_governing_type_governs_and_every_check_has_a_name_of_its_own() -> None:
    assert all(item.governs for item in TYPES)
    assert len({check.name for check in CHECKS}) == len(CHECKS)
