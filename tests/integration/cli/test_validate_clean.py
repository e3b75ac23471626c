"""`lehr validate --clean` finds generators that do not make the same of the same input."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lehr.base.diagnostics import Diagnostic, Position
from lehr.cli.working_tree import look_at
from lehr.control.state_folder import default_state

HEAD = "from lehr.sdk.generator import annotate, asset, for_each_asset, for_each_file\n"
SAME = """
@for_each_file("in/*.yaml")
def same(file):
    yield asset("a", "lehr.File", {"path": "out/a", "content": ",".join(sorted({"x", "y", "z"}))})
"""
SET = """
@for_each_file("in/*.yaml")
def order(file):
    names = {f"name-{number}" for number in range(20)}
    yield asset("a", "lehr.File", {"path": "out/a", "content": ",".join(names)})
"""
ADDRESS = """
@for_each_file("in/*.yaml")
def address(file):
    yield asset("a", "lehr.File", {"path": "out/a", "content": repr(object())})
"""
HASH = """
@for_each_file("in/*.yaml")
def hashed(file):
    yield asset(f"a-{hash(file.path) % 1000003}", "lehr.File", {"path": "out/a", "content": "x"})
"""
ANNOTATED = """
@for_each_asset("lehr.File")
def owners(file):
    yield annotate(file.id, "lehr.Owner", {"team": "".join({f"{number}" for number in range(20)})})
"""


def found(folder: Path, generators: str) -> tuple[Diagnostic, ...]:
    for name, content in {
        "lehr.yaml": "partition: p\n",
        "in/one.yaml": "x: 1\n",
        "generators/g.py": HEAD + generators,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    tree = asyncio.run(look_at(folder, None, twice=True))
    return tuple(tree.diagnostics)


def test_generators_that_repeat_themselves_are_valid(tmp_path: Path) -> None:
    assert found(tmp_path, SAME) == ()


@pytest.mark.parametrize("code", [SET, ADDRESS], ids=["set", "address"])
def test_an_output_that_depends_on_order_or_address_is_an_error_that_names_field_and_values(
    tmp_path: Path, code: str
) -> None:
    [problem] = found(tmp_path, code)
    assert (problem.code, problem.subject) == ("GEN035", "a")
    assert problem.why.startswith("/payload/content of a is ")
    assert " in one build and " in problem.why
    assert problem.at is not None
    assert problem.at.file == "generators/g.py"
    assert problem.what.startswith("generators/g.py:")


def test_an_asset_that_only_one_build_has_is_an_error(tmp_path: Path) -> None:
    [problem] = found(tmp_path, HASH)
    assert problem.code == "GEN035"
    assert "only one of two builds" in problem.why
    assert "(2 assets differ)" in problem.why
    assert problem.at == Position("generators/g.py", 5)


def test_an_addon_is_laid_at_the_door_of_the_generator_that_put_it_there(tmp_path: Path) -> None:
    [problem] = found(tmp_path, SAME + ANNOTATED)
    assert problem.what.startswith("generators/g.py:owners ")
    assert "/addons/lehr.Owner/team" in problem.why


PACKAGED = """
import shop_rates

@for_each_file("in/*.yaml")
def rated(file):
    yield asset("a", "lehr.File", {"path": "out/a", "content": str(shop_rates.RATE)})
"""


def test_what_a_control_plane_has_kept_must_be_what_is_made_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "installed" / "shop_rates"
    package.mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", str(package.parent), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (package / "__init__.py").write_text("RATE = 1\n")
    workspace = tmp_path / "workspace"
    assert found(workspace, PACKAGED) == ()

    def lehr(*arguments: str, code: int = 0) -> str:
        command = [sys.executable, "-m", "lehr", *arguments, str(workspace)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = f"{done.stdout} {done.stderr}"
        assert done.returncode == code, said
        return " ".join(said.split())

    lehr("run", "--once")
    assert "reproducible in two clean builds and in one with cached results" in lehr("validate", "--clean")
    (package / "__init__.py").write_text("RATE = 2\n")  # in place, so that its folder does not change
    said = lehr("validate", "--clean", code=1)
    assert "GEN038" in said
    assert '/payload/content of a is "2" in one build and "1" in another' in said
    assert f"{default_state(workspace)}/generate/memo.sqlite" in said
