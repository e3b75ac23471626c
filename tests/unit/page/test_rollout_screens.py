"""The screens of a rollout: every number is there as text, and no text of anybody does anything."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from lehr.base.moments import plain
from lehr.http.problems import ProblemError
from lehr.model.asset import AssetId
from lehr.model.evidence import Moments
from lehr.page.api import InPartition
from lehr.page.rendering import render
from lehr.page.rollout_screens import read_canary, read_forecast, read_rollout
from lehr.rollouts.canary_trace import canary_trace
from lehr.rollouts.comparison import Compared, Comparison
from lehr.rollouts.forecast import UnitForecast
from lehr.rollouts.policy import Policy
from lehr.rollouts.status import UnitState, UnitStatus
from tests.unit.rollouts.test_forecast import made
from tests.unit.rollouts.test_measuring import Traffic, compared
from tests.unit.rollouts.test_status import BEGUN, GOOD, status

MARKUP = "\"><script>alert(1)</script><img src=x onerror=a()> {{ 7 * 7 }} '; & "
HOSTILE = f"{MARKUP}\u202egnp.exe\u0007" + "x" * 3000
NOW = 100.0
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Answers:
    """Resources with these answers."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers
        self.asked: dict[str, Mapping[str, str]] = {}

    async def compares(self, partition: str) -> bool:
        return False

    async def get(self, name: str, parameters: Mapping[str, str] = {}) -> Any:
        self.asked[name] = parameters
        answer = self._answers[name.replace("-", "_")]
        if isinstance(answer, Exception):
            raise answer
        return answer


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(plain(value)))


def rollout(**changes: Any) -> Any:
    answer = as_json(status(*BEGUN, *GOOD))
    return {**answer, "commit": {"author": "Ana <ana@x>", "subject": "Serve version 2"}, **changes}


def trace(bad: float = 0.01, looks: int = 12) -> Any:
    rolling = compared("a", "b", "c")
    for _ in range(looks):
        rolling.look(Traffic(rolling, bad=bad))
    return as_json(canary_trace(Policy(AssetId("waves"), rolling.rules), rolling.course))


def shown(screen: str, answers: Answers, **asked: str) -> str:
    read = {"rollout": read_rollout, "canary": read_canary, "forecast": read_forecast}[screen]
    values = asyncio.run(read(InPartition(answers, "shop"), {"id": "waves", **asked}))
    common = {
        "partition": "shop",
        "current": "rollouts",
        "title": "",
        "navigation": (),
        "static": {"lehr.css": "/a.css", "lehr.js": "/a.js", "lehr.svg": "/a.svg"},
    }
    return render(f"{screen}.html", NOW, {**common, **values})


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def page(html: str) -> _Page:
    """A page whose elements are closed, and whose pictures are well-formed and have a text."""
    parser = _Page()
    parser.feed(html)
    assert parser.open == []
    for picture in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        ElementTree.fromstring(picture)
    for tag, attributes in parser.tags:
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        if tag == "svg":
            assert attributes["role"] == "img"
            assert attributes["aria-label"]
    assert [attributes.get("src") for tag, attributes in parser.tags if tag == "script"] == ["/a.js"]
    return parser


def text_of(html: str) -> str:
    return " ".join(" ".join(page(html).words).split())


# --- waves --------------------------------------------------------------------------------


def test_each_wave_is_a_lane_with_its_gate() -> None:
    text = text_of(shown("rollout", Answers(rollout=rollout(), rollout_history={"events": []})))
    assert "waves is under way, wave 1 of 2" in text
    assert "1 of 3 units updated" in text
    assert (
        "Wave 1 ◐ under way 1 unit, each good for 1m Waits for a to stay good for 40s more ● good a" in text
    )
    second = "Wave 2 ▲ ahead 2 units Waits for wave 1, until each of its units is good and has been for 1m"
    assert second in text
    assert "incarnation 2: Serve version 2, by Ana" in text


def test_a_policy_that_never_had_a_rollout_has_a_screen() -> None:
    none = ProblemError("NotFound", "there never was a rollout of waves", code="ROL137")
    idle = {**as_json(status()), "commit": None}
    assert "waves" in text_of(shown("rollout", Answers(rollout=idle, rollout_history=none)))
    with pytest.raises(ProblemError):
        shown("rollout", Answers(rollout=rollout(), rollout_history=ProblemError("Busy", "later", code="X")))


def test_of_many_units_some_are_listed_and_all_are_counted() -> None:
    units = [as_json(UnitStatus(id=f"u{n:03}", assets=(), state=UnitState.WAITING)) for n in range(120)]
    units[119]["state"] = "bad"
    lane = {**rollout()["lanes"][0], "units": [unit["id"] for unit in units]}
    many = rollout(units=units, lanes=[lane])
    text = text_of(shown("rollout", Answers(rollout=many, rollout_history={"events": []})))
    assert "■ bad u119" in text
    assert "u048" in text
    assert "u049" not in text
    assert "and 70 waiting" in text


# --- canaries -----------------------------------------------------------------------------


def test_every_number_of_an_analysis_is_text() -> None:
    found = trace()
    html = shown("canary", Answers(rollout_canary=found))
    text, now = text_of(html), found["metrics"][0]["now"]
    assert "Canary a Control b, c" in text
    assert f"Evidence to fail {now['e_fail']:.3g} of {now['fail_at']:,.0f}" in text
    assert f"Evidence to pass {now['e_pass']:.3g} of {now['pass_at']:,.0f}" in text
    assert "nothing passes before each group has" in text
    assert html.count("<svg") == 2
    assert len(re.findall(r'<polyline class="evidence (?:pass|fail)" points="[\d., ]+"/>', html)) == 2


@pytest.mark.parametrize(
    ("bad", "word"), [(0.3, "has failed"), (0.01, "has passed"), (0.0115, "not decided")]
)
def test_the_verdict_is_the_title(bad: float, word: str) -> None:
    looks = 5 if word == "not decided" else 60
    assert word in text_of(shown("canary", Answers(rollout_canary=trace(bad, looks))))


def test_one_look_has_no_picture_of_growth() -> None:
    html = shown("canary", Answers(rollout_canary=trace(looks=1)))
    page(html)
    assert "polyline" not in html


def test_without_an_analysis_the_screen_says_so() -> None:
    assert "no canary analysis" in text_of(shown("canary", Answers(rollout_canary=None)))


@pytest.mark.parametrize(
    "changes",
    [
        {"interval": [None, None], "ratio": None},
        {"interval": [0.0, None], "ratio": 0.0},
        {"interval": [0.0, 1e12], "ratio": 1e9, "e_fail": 1e300, "e_pass": 0.0},
        {"e_fail": 1e300, "e_pass": 1e300, "fail_at": 1e9},
    ],
)
def test_extreme_numbers_stay_within_the_picture(changes: dict[str, Any]) -> None:
    found = trace()
    metric = found["metrics"][0]
    metric["now"].update(changes)
    metric["points"][-1].update({key: value for key, value in changes.items() if key in metric["points"][-1]})
    html = shown("canary", Answers(rollout_canary=found))
    page(html)
    for x in re.findall(r' (?:x|cx|x1|x2)="([-\d.e]+)"', html):
        assert 0 <= float(x) <= 640


# --- forecasts ----------------------------------------------------------------------------


def a_forecast(**changes: Any) -> Any:
    return {"forecast": {**as_json(made()), **changes}}


def expected(unit: str, updated: float | None, validated: float | None) -> Compared:
    return Compared(
        unit=unit,
        wave=1,
        units=1,
        updated=updated,
        expected_updated=Moments(10.0, 20.0),
        validated=validated,
        expected_validated=Moments(20.0, 30.0),
    )


def test_what_happened_is_next_to_the_forecast() -> None:
    rows = (expected("", 15.0, 40.0), expected("a", 15.0, 12.0), expected("b", None, None))
    compared_ = as_json(Comparison(ends=Moments(), unknown="", rows=rows))
    answers = Answers(rollout=rollout(forecast=compared_), rollout_forecast=a_forecast())
    text = text_of(shown("forecast", answers))
    assert "a 1970-01-01 00:00:10Z to 1970-01-01 00:00:20Z 1970-01-01 00:00:15Z" in text
    assert "10s late" in text
    assert "8s early" in text
    assert "Assumptions" in text
    assert "every push succeeds, and every validation passes before its deadline" in text


def test_a_forecast_of_every_unit_is_not_compared() -> None:
    rows = (expected("", 15.0, 40.0),)
    compared_ = as_json(Comparison(ends=Moments(), unknown="", rows=rows))
    answers = Answers(rollout=rollout(forecast=compared_), rollout_forecast=a_forecast())
    text = text_of(shown("forecast", answers, every_unit="true"))
    assert "late" not in text.partition("Assumptions")[0].partition("From now on")[2]
    assert answers.asked["rollout-forecast"]["every_unit"] == "true"


def test_units_of_later_rollouts_have_a_table_of_their_own() -> None:
    later = as_json(UnitForecast(id="u9", wave=1, updated=Moments(10.0, 20.0), validated=Moments()))
    answers = Answers(rollout=rollout(forecast=None), rollout_forecast=a_forecast(following=[later]))
    text = text_of(shown("forecast", answers))
    assert "u9 1970-01-01 00:00:10Z to 1970-01-01 00:00:20Z unknown" in text
    without = Answers(rollout=rollout(forecast=None), rollout_forecast=a_forecast())
    assert "Closed until the rollout is over" in text
    assert "Closed until the rollout is over" not in text_of(shown("forecast", without))


def test_times_that_are_not_known_are_called_unknown() -> None:
    unknown = {"early": None, "late": None}
    found = a_forecast(ends=unknown)
    for wave in found["forecast"]["waves"]:
        wave.update(dict.fromkeys(("starts", "updated", "validated", "ends"), unknown), unknown="held")
    html = shown("forecast", Answers(rollout=rollout(forecast=None), rollout_forecast=found))
    text = text_of(html)
    assert "its end is unknown" in text
    assert "wave 1 held" in text
    assert "<svg" not in html


@pytest.mark.parametrize("code", ["ROL134", "ROL135", "ROL136"])
def test_where_there_is_none_the_cause_is_shown(code: str) -> None:
    problem = ProblemError("NotFound", "waves has nothing to roll out", code=code, why="each unit has it")
    text = text_of(shown("forecast", Answers(rollout=rollout(), rollout_forecast=problem)))
    assert "no forecast" in text
    assert "waves has nothing to roll out: each unit has it" in text


def test_other_problems_are_problems_of_the_page() -> None:
    problem = ProblemError("Busy", "later", code="HTP999")
    with pytest.raises(ProblemError):
        shown("forecast", Answers(rollout=rollout(), rollout_forecast=problem))


# --- texts of anybody -----------------------------------------------------------------------


def poisoned(value: Any, keep: frozenset[str]) -> Any:
    """With every text replaced, but for those that the program itself chooses."""
    if isinstance(value, dict):
        return {name: item if name in keep else poisoned(item, keep) for name, item in value.items()}
    if isinstance(value, list):
        return [poisoned(item, keep) for item in value]
    return HOSTILE if isinstance(value, str) else value


TIMES = "begun_at until at early late since made_at ended_at updated validated decided_at"
CHOSEN = frozenset({"state", "verdict", *TIMES.split()})


@pytest.mark.parametrize("screen", ["rollout", "canary", "forecast"])
def test_no_text_does_anything(screen: str) -> None:
    status_ = poisoned(rollout(forecast=None), CHOSEN)
    unit = {**status_["units"][0], "assets": [HOSTILE, "x"], "why": HOSTILE}
    status_ |= {"units": [unit], "notes": [HOSTILE], "policy": HOSTILE, "state": "running"}
    answers = Answers(
        rollout=status_,
        rollout_history={"events": [{"at": "2026-01-31T12:00:00Z", "text": HOSTILE}]},
        rollout_canary=poisoned(trace(), CHOSEN),
        rollout_forecast={"forecast": poisoned(a_forecast(skipped={"u": "x"})["forecast"], CHOSEN)},
    )
    html = shown(screen, answers)
    text = " ".join(page(html).words)
    assert "<img" not in html
    assert "{{ 7 * 7 }}" in text
    assert "\u202e" not in html
    assert "\\u{202e}" in text
    assert "x" * 2100 not in html
