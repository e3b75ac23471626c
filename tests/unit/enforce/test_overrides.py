"""An override that would have no effect is refused: in an emergency nobody would notice."""

from __future__ import annotations

import pytest

from lehr.base.errors import LehrError
from lehr.checks.calendar import Calendar, Window
from lehr.checks.rate_limit import RateLimit
from lehr.enforce.overrides import overridable, require_overridable
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.selector import Selector


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


def test_those_that_say_so_can_be_overridden() -> None:
    assert overridable([LIMIT, STRICT, OPEN]) == [OPEN]
