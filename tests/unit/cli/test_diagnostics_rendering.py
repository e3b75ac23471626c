"""How diagnostics look to people and programs."""

from __future__ import annotations

import json

from lehr.base.diagnostics import Diagnostic, Excerpt, Position, Severity
from lehr.cli.diagnostics import render, summary, to_json

LINE = Excerpt("  replicas: -1", 2)


def problem(**fields: object) -> Diagnostic:
    values = {"code": "GEN007", "what": "it is wrong", "at": Position("a.yaml", 3, 3), **fields}
    return Diagnostic(**values)  # type: ignore[arg-type]


def test_a_diagnostic_shows_code_place_line_caret_why_and_fix() -> None:
    assert render([problem(why="because", fix="mend it", excerpt=LINE)]) == (
        "error[GEN007]: it is wrong\n"
        "  --> a.yaml:3:3\n"
        "   |\n"
        " 3 |   replicas: -1\n"
        "   |   ^\n"
        "   = why: because\n"
        "   = fix: mend it\n"
        "\n"
        "1 error"
    )


def test_without_an_excerpt_only_the_place_is_shown() -> None:
    shown = render([problem(at=Position("gone.yaml", 3, 3))])
    assert "--> gone.yaml:3:3" in shown
    assert "|" not in shown
    assert "-->" not in render([problem(at=None)])


def test_colour_is_only_there_when_asked_for() -> None:
    assert "\x1b" not in render([problem()])
    assert "\x1b[1;31merror[GEN007]\x1b[0m" in render([problem()], colour=True)
    assert "\x1b[1;33mwarning" in render([problem(severity=Severity.WARNING)], colour=True)


def test_the_summary_counts_errors_and_warnings() -> None:
    warning = problem(severity=Severity.WARNING)
    assert summary([problem(), problem(), problem(), warning]) == "3 errors, 1 warning"
    assert summary([warning]) == "1 warning"
    assert summary([]) == "no problems"


def test_nothing_that_users_wrote_reaches_the_terminal_as_a_command() -> None:
    shown = render([problem(what="\x1b[2Jx", excerpt=Excerpt("\x1b]0;owned\x07", 0))])
    assert "\x1b" not in shown
    assert "\\x1b]0;owned\\x07" in shown


def test_the_caret_stands_below_its_column_after_tabs_and_wide_characters() -> None:
    shown = render([problem(excerpt=Excerpt("\t語:x", 3))])
    line, caret = shown.split("\n")[3:5]
    assert line.endswith("|  語:x")
    assert caret.index("^") == caret.index("|") + 2 + 1 + 2 + 1


def test_of_many_diagnostics_errors_are_shown_first_and_the_rest_is_counted() -> None:
    many = [problem(at=Position("a.yaml", n, 1), severity=Severity.WARNING) for n in range(1, 50)]
    shown = render([*many, problem(at=Position("z.yaml", 1, 1))], most=5)
    assert shown.count("-->") == 5
    assert "z.yaml" in shown
    assert shown.endswith("... and 45 more\n\n1 error, 49 warnings")


def test_as_json_every_field_is_there_in_order_of_place() -> None:
    found = json.loads(to_json([problem(at=Position("b.yaml", 1, 1)), problem(excerpt=LINE)]))
    assert [item["at"]["file"] for item in found] == ["a.yaml", "b.yaml"]
    assert found[0] == {
        "code": "GEN007",
        "what": "it is wrong",
        "why": "",
        "fix": "",
        "subject": "",
        "at": {"file": "a.yaml", "line": 3, "column": 3},
        "severity": "error",
        "excerpt": {"text": "  replicas: -1", "caret": 2},
        "confidential": False,
    }
