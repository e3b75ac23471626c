"""How an asset differs: values next to each other, none that the plugin does not show, and their origins."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from lehr.http.problems import ProblemError
from lehr.page.api import InPartition
from lehr.page.diff_screen import read_diff
from lehr.page.diff_view import (
    MOST_ROWS,
    Intended,
    Value,
    origins_of_asset,
    origins_of_field,
    rows_of,
)
from lehr.page.rendering import render
from lehr.testing import run
from tests.unit.page.test_rollout_screens import HOSTILE, NOW, Answers, page, text_of

COMMIT = {"id": "c0ffee" * 6, "author": "Ada <ada@x>", "time": "2026-01-01T00:00:00Z", "subject": "Begin"}
GONE = ProblemError("NotFound", "it is pruned", code="X")


def asset(addons: Any = None, **payload: Any) -> dict[str, Any]:
    return {"id": "a", "type": "lehr.File", "payload": payload, "addons": addons or {}}


def diff(*changes: tuple[str, Any, Any], **effects: bool) -> dict[str, Any]:
    found = [
        {"path": path, "intended": intended, "observed": observed} for path, intended, observed in changes
    ]
    return {
        "changes": found,
        "effects": {"destructive": False, "disruptive": False, **effects},
        "notes": [],
    }


def source(file: str, line: int = 0, commit: Any = COMMIT) -> dict[str, Any]:
    return {"at": {"file": file, "line": line, "column": 0}, "content": "id", "text": "", "commit": commit}


def maker(name: str, **changes: Any) -> dict[str, Any]:
    by = [name, 7, "each file", "*.yaml", "b.yaml"]
    return {"by": by, "code": source("gen.py", 7), "addon": "", "path": "", "files": [], **changes}


def blame(declared: Any = None, by: Any = (), **field: Any) -> dict[str, Any]:
    own = {"declared": declared, "makers": list(by), "recorded": True}
    about = {"written": None, "makers": [], "found": [], **field}
    return {"chain": [own], "field": about, "readable": True}


# --- rows ---------------------------------------------------------------------------------


def test_a_value_that_the_plugin_shows_is_next_to_that_applied_last() -> None:
    [row] = rows_of(diff(("mode", "0600", "0644")), Intended(asset(mode="0600"), asset(mode="0640")))
    assert (row.intended, row.observed, row.applied) == (Value("0600"), Value("0644"), Value("0640"))
    assert (row.kind, row.pointer) == ("changed", "/payload/mode")


@pytest.mark.parametrize(("before", "word"), [("secret", "as intended"), ("other", "another value")])
def test_a_value_that_the_plugin_only_describes_is_compared_and_not_shown(before: str, word: str) -> None:
    described = {"size": 6, "digest": "d"}
    [row] = rows_of(
        diff(("content", described, {"size": 1})), Intended(asset(content="secret"), asset(content=before))
    )
    assert (row.applied.known, row.applied.text) == (False, word)
    assert "secret" not in str(row)
    assert "other" not in str(row._replace(applied=Value(None)))


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ("labels/a.b/0", "/payload/labels/a.b/0"),
        ("labels/a.b/9", "/payload/labels/a.b"),
        ("addons/lehr.Owner/team", "/addons/lehr.Owner/team"),
        ("replicas/1/content", ""),
        ("nothing", ""),
        ("", ""),
        ("/", ""),
        ("x~y", "/payload/x~0y"),
    ],
)
def test_a_path_of_a_plugin_is_found_in_the_asset(path: str, pointer: str) -> None:
    now = asset({"lehr.Owner": {"team": "web"}}, labels={"a.b": [1]}, replicas=2, **{"x~y": 1})
    assert rows_of(diff((path, 1, 2)), Intended(now, None))[0].pointer == pointer


def test_what_the_push_removes_and_adds_is_marked() -> None:
    rows = rows_of(diff(("a", None, 1), ("b", 1, None)), Intended(None, None))
    assert [row.kind for row in rows] == ["removed", "added"]
    assert [row.applied.text for row in rows] == ["not known"] * 2


def test_what_only_intent_has_changed_follows_once() -> None:
    now, before = (
        asset({"lehr.Owner": {"team": "b"}}, mode=1, on={"x": 1}),
        asset(mode=2, on={"x": 2, "y": 3}),
    )
    rows = rows_of(diff(("mode", 1, 2)), Intended(now, before))
    assert [(row.path, row.kind) for row in rows] == [
        ("mode", "changed"),
        ("on/x", "intent"),
        ("on/y", "intent"),
        ("addons/lehr.Owner", "intent"),
    ]
    assert rows[2].intended.text == "absent"
    assert rows[1].observed.text == "no difference reported"
    assert rows_of(None, Intended(now, before))[0].observed.text == "not compared"


# --- origins ------------------------------------------------------------------------------


def test_the_origin_of_a_field_is_a_line_with_its_commit() -> None:
    [found] = origins_of_field(blame(source("a.yaml", 1), written=source("a.yaml", 5)))
    assert (found.how, found.where, found.commit.subject) == ("set at", "a.yaml:5", "Begin")
    [default] = origins_of_field(blame(source("a.yaml", 1)))
    assert (default.how, default.where) == ("default of the type, not set in", "a.yaml")


def test_the_origin_of_a_made_field_is_a_generator_and_its_input() -> None:
    made = maker("gen.py:sites", files=[source("b.yaml")])
    found = [{"source": source("b.yaml", number)} for number in range(1, 9)]
    first, *others = origins_of_field(blame(None, [made], makers=[0], found=found))
    assert (first.how, first.where, first.by) == ("set by", "gen.py:7", "gen.py:sites")
    assert [item.where for item in others] == ["b.yaml:1", "b.yaml:2", "b.yaml:3"]
    whole = origins_of_asset(blame(None, [made, maker("p", path="/payload/x"), maker("q", addon="lehr.O")]))
    assert [item.how for item in whole] == ["made by", "from", "changed by", "annotated by"]


# --- the screen ---------------------------------------------------------------------------


def why(found: Any, **changes: Any) -> dict[str, Any]:
    row = {"id": "a", "status": "Waiting", "reason": "Frozen"}
    ledger = {"content": 1, "at": "2026-01-01T00:00:00Z"}
    return {"asset": row, "diff": found, "ledger": ledger, "decisions": [{"content": 2}], **changes}


def html_of(**answers: Any) -> str:
    values = asyncio.run(read_diff(InPartition(Answers(**answers), "shop"), {"id": "a"}))
    common = {
        "partition": "shop",
        "current": "assets",
        "title": "",
        "navigation": (),
        "static": {"lehr.css": "/a.css", "lehr.js": "/a.js", "lehr.svg": "/a.svg"},
    }
    return render("diff.html", NOW, {**common, **values})


def test_destruction_is_marked() -> None:
    found = diff(("mode", 1, 2), destructive=True)
    text = text_of(html_of(why=why(found), asset=asset(mode=1), blame=blame(source("a.yaml", 1))))
    assert "■ The push destroys what cannot be restored" in text
    assert "interrupts" not in text
    assert "by Ada" in text


def test_without_history_and_without_a_former_version_it_says_what_is_unknown() -> None:
    text = text_of(html_of(why=why(diff(("mode", 1, 2))), asset=GONE, blame=GONE))
    assert "a: 1 difference" in text
    assert "not known" in text
    assert "are known while the state has a copy of the source" in text


def test_an_asset_without_a_turn_has_a_screen() -> None:
    text = text_of(html_of(why=why(None, ledger=None, decisions=[]), asset=asset(), blame=GONE))
    assert "a: not compared with production" in text
    assert "never" in text


def test_of_very_many_fields_some_are_shown_and_looked_up_and_all_are_counted() -> None:
    fields = {f"f{number:03}": number for number in range(300)}
    found = diff(*((name, value, None) for name, value in fields.items()))
    text = text_of(html_of(why=why(found), asset=asset(**fields), blame=blame(source("a.yaml", 1))))
    assert "a: 300 differences" in text
    assert f"and {300 - MOST_ROWS} more" in text
    assert text.count("default of the type") == 20
    assert "not looked up" in text


def test_the_origin_of_a_field_that_takes_too_long_is_not_waited_for() -> None:
    class Slow(Answers):
        async def get(self, name: str, parameters: Mapping[str, str] = {}) -> Any:
            if parameters.get("field") == "/payload/b":
                await asyncio.sleep(3600)
            return await super().get(name, parameters)

    written = blame(source("a.yaml", 1), written=source("a.yaml", 5))
    answers = Slow(why=why(diff(("a", 1, 2), ("b", 1, 2))), asset=asset(a=1, b=1), blame=written)
    shown = run(lambda: read_diff(InPartition(answers, "shop"), {"id": "a"}), seed=1)
    assert [row.path for row in shown["rows"]] == ["a", "b"]
    assert [*shown["origins"]] == ["/payload/a"]


def test_no_text_of_a_diff_can_do_anything() -> None:
    commit = {**COMMIT, "author": HOSTILE, "subject": HOSTILE}
    by = maker(HOSTILE, code=source(HOSTILE, 1, commit))
    found = {**diff(("mode", HOSTILE, HOSTILE), (HOSTILE, HOSTILE, None)), "notes": [HOSTILE]}
    origin = blame(source(HOSTILE, 1, commit), [by], written=source(HOSTILE, 2, commit), makers=[0])
    html = html_of(why=why(found), asset=asset(mode=HOSTILE), blame=origin)
    page(html)
    assert "<script>alert" not in html
    assert "<img" not in html
    assert "\u202e" not in html
    assert "\u0007" not in html
