"""Templates are strict: a value that is missing is an error with its place, and nothing is left to chance."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.sdk.generator import UnreadableFileError
from lehr.sdk.templates import provided, render

A, B = "templates/a.j2", "templates/b.j2"


def rendered(text: str, **values: Any) -> str:
    with provided({A: text.encode(), B: b"first\n{{ nope }}\n"}):
        return render(A, **values)


@pytest.mark.parametrize(
    ("text", "values", "result"),
    [
        ("{{ x }}\n", {"x": "<&>"}, "<&>\n"),
        ("{% for i in x %}\n- {{ i }}\n{% endfor %}\n", {"x": [1, 2]}, "- 1\n- 2\n"),
        ("a\n    {% if x is defined %}\n    b\n    {% endif %}\nc", {}, "a\nc"),
        ("{{ x | default('d') }}{{ y.z | default(0) }}", {"y": {}}, "d0"),
        (f"{{% include '{B}' %}}", {"nope": 1}, "first\n1\n"),
    ],
)
def test_templates_become_text_without_escapes_and_stray_lines(
    text: str, values: dict[str, Any], result: str
) -> None:
    assert rendered(text, **values) == result


@pytest.mark.parametrize(
    ("text", "at", "why"),
    [
        ("a\n  xx {{ xx }} {{ x }}\n", f"{A}:2:18", "'x' is undefined"),
        ("a\n  name {{ site.name }}\n", f"{A}:2:16", "no attribute 'name'"),
        ("{% for i in y %}{% endfor %}\n", f"{A}:1:13", "'y' is undefined"),
        ("\n\n{% if y > 3 %}{% endif %}\n", f"{A}:3:7", "'y' is undefined"),
        ("{{ y + 3 }}\n", f"{A}:1:4", "'y' is undefined"),
        ("{% if y %}{% endif %}\n", f"{A}:1:7", "'y' is undefined"),
        (f"a\n{{% include '{B}' %}}\n", f"{B}:2:4", "'nope' is undefined"),
        ("a\n{% bad %}\n", f"{A}:2", "unknown tag"),
        ("a\n{{ 1 / 0 }}\n", f"{A}:2", "ZeroDivisionError"),
        ("a\n{% include 'templates/c.j2' %}\n", f"{A}:2", "no template templates/c.j2"),
        ("{{ [1, 2] | random }}", f"{A}:1", "No filter named 'random'"),
        ("{{ lipsum() }}", f"{A}:1:4", "'lipsum' is undefined"),
        ("{{ ''.__class__.__mro__ }}", f"{A}:1", "unsafe"),
        ("{{ items.append(1) }}", f"{A}:1", "unsafe"),
        ("{% for i in range(1000000) %}{% endfor %}", f"{A}:1", "Range too big"),
    ],
)
def test_what_cannot_be_rendered_is_an_error_with_its_place(text: str, at: str, why: str) -> None:
    xx, site, items = 1, dict[str, str](), list[int]()
    with pytest.raises(UnreadableFileError) as caught:
        rendered(text, xx=xx, site=site, items=items)
    (found,) = caught.value.diagnostics
    assert (found.code, str(found.at)) == ("GEN039", at)
    assert why in found.why
    assert ("default(" in found.fix) is ("undefined" in why or "attribute" in why)
    assert items == []


def test_a_template_that_was_not_provided_is_an_error_that_names_those_that_were() -> None:
    with provided({A: b""}), pytest.raises(UnreadableFileError) as caught:
        render(B)
    assert f"no template {B}; templates of this generator: {A}" in caught.value.diagnostics[0].why
    with pytest.raises(UnreadableFileError):
        render(A)


def test_each_context_renders_its_own_templates() -> None:
    for text in ("one", "two"):
        with provided({A: text.encode()}):
            assert render(A) == text
