"""Target selections of a plugin in another process, and the trouble that they may have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lehr.base.errors import LehrError, StalledError
from lehr.plugins.remote.selection import RemoteSelection
from lehr.rollouts.services import ask, question_of
from lehr.sdk.target_selection import SelectionService, Unit
from lehr.testing.conformance.target_selection import RULES, Rule, Subject
from lehr.wiring.deployment import Deployment
from lehr.wiring.remote_plugins import read_plugins, remote_plugins, remote_selections
from lehr.wiring.selection_services import selections
from tests.integration.plugins.remote.managed import connection


def asked(story: Callable[[SelectionService], Awaitable[Any]], name: str = "one-by-one") -> Any:
    async def main() -> Any:
        opened = connection("line_plugin.py", [])
        try:
            return await story(RemoteSelection(name, opened))
        finally:
            await opened.close()

    return asyncio.run(main())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_selection_of_a_plugin_keeps_the_contract(rule: Rule) -> None:
    labels = [{"ring": "b"}, {"ring": "a"}]
    asked(lambda service: rule(Subject(lambda: service, {"by": "ring"}, labels=labels)))


def test_its_answer_is_followed() -> None:
    question = question_of([Unit(id="b"), Unit(id="a")], 1000.0, at_most=1)
    assert asked(lambda service: ask(service, question)).selection.update == ("a",)


def test_trouble_updates_nothing_and_is_the_cause() -> None:
    question = question_of([Unit(id="a")], 1000.0)
    found = asked(lambda service: ask(service, question), name="no-such-selection")
    assert found.selection.update == ()
    assert "KeyError" in str(found.refused)


def test_policies_find_it_by_the_name_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "plugins.yaml"
    file.write_text("plugins: {lines: {selections: [one-by-one], address: 'unix:/nowhere'}}\n")
    deployment = Deployment(location=".", state=tmp_path / "state", base=tmp_path, plugins=file)
    found = selections({}, None, remote_selections(remote_plugins(deployment, ())))
    assert found("one-by-one").name == "one-by-one"
    with pytest.raises(LehrError):
        found("another")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("plugins: {a: {command: [x]}}", "`types`, `selections`, `checks` or `validators` must be given"),
        ("plugins: {a: {types: [x.Y]}}", "exactly one of `command` and `address`"),
        ("plugins: {a: {types: [x.Y], command: [x], address: 'unix:/x'}}", "exactly one of"),
        ("plugins: {a: {types: [x.Y], address: 'host:1'}}", "`tls` must be given"),
        ("plugins: {a: {types: [x.Y], command: [x], sha256: abc}}", "64 hexadecimal digits"),
        ("plugins: {A: {types: [x.Y], command: [x]}}", "is not a name"),
        (
            "plugins: {a: {types: [x.Y], command: [x]}, b: {types: [x.Y], command: [y]}}",
            "the type x.Y is served more than once",
        ),
        ("plugins: {a: {types: [x.Y], command: [x], directry: y}}", "directry"),
        ("plugins: [", "line 1"),
        ("", "single mapping"),
    ],
)
def test_a_file_of_plugins_that_is_wrong_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "plugins.yaml"
    file.write_text(text)
    with pytest.raises(StalledError) as caught:
        read_plugins(file)
    assert problem in caught.value.why
    assert msgspec.json.encode(str(caught.value))


def test_a_plugin_cannot_take_over_a_type(tmp_path: Path) -> None:
    file = tmp_path / "plugins.yaml"
    file.write_text("plugins: {a: {types: [lehr.File], command: [x]}}\n")
    deployment = Deployment(location=".", state=tmp_path / "state", base=tmp_path, plugins=file)
    with pytest.raises(StalledError, match=r"cannot serve lehr\.File"):
        remote_plugins(deployment, {"lehr.File"})
