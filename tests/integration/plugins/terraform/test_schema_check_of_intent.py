"""`lehr validate` and publication find what does not fit the schema of a provider that has run here."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Diagnostic
from lehr.base.errors import LehrError
from lehr.cli.working_tree import look_at
from lehr.control.state_folder import default_state
from lehr.plugins.terraform.kept_schemas import KeptSchemas
from lehr.plugins.terraform.launch import Launcher
from lehr.plugins.terraform.payload import TerraformProvider
from tests.terraform import fake
from tests.terraform.aws import sha256

ASSETS = """\
- id: fake
  type: lehr.TerraformProvider
  payload: {{path: {program}, sha256: {sha256}, config: {{store: {store}}}}}
- id: lamp
  type: lehr.TerraformResource
  payload:
    provider: fake
    type: fake_given
    config:
      name: lamp
      sise: 3
      labels:
        - {{a: b}}
- id: chair
  type: lehr.TerraformResource
  payload:
    provider: fake
    type: fake_gvien
    config: {{name: chair}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = fake.binary(tmp_path / "bin")
    (tmp_path / "work" / "assets").mkdir(parents=True)
    (tmp_path / "work" / "lehr.yaml").write_text("partition: shop\n")
    text = ASSETS.format(program=program, sha256=sha256(program), store=tmp_path / "store")
    (tmp_path / "work" / "assets" / "all.yaml").write_text(text)
    return tmp_path


def found(folder: Path) -> list[Diagnostic]:
    tree = asyncio.run(look_at(folder / "work", None))
    return [item for item in tree.diagnostics if item.code.startswith("VAL07")]


def started(folder: Path) -> None:
    """Once, as a look does."""
    program = folder / "bin" / "terraform-provider-fake"
    kept = KeptSchemas(default_state(folder / "work") / "terraform-schemas")

    async def run() -> None:
        launcher = Launcher(folder, Inline(), SystemClock(), kept)
        payload = TerraformProvider(
            path=str(program), sha256=sha256(program), config={"store": str(folder / "store")}
        )
        await (await launcher.start(payload, {})).close()

    asyncio.run(run())


def test_a_provider_that_has_never_run_here_is_not_started(folder: Path) -> None:
    assert found(folder) == []
    assert not (folder / "store").exists()


def test_each_problem_has_its_line_and_column(folder: Path) -> None:
    started(folder)
    positions = [(item.code, item.at) for item in found(folder)]
    places = {(code, at.file, at.line, at.column) for code, at in positions if at is not None}
    assert places == {
        ("VAL071", "assets/all.yaml", 11, 7),
        ("VAL071", "assets/all.yaml", 12, 7),
        ("VAL070", "assets/all.yaml", 18, 5),
    }


def test_a_provider_that_refuses_its_configuration_has_shown_its_schema(folder: Path) -> None:
    program = folder / "bin" / "terraform-provider-fake"
    kept = KeptSchemas(folder / "schemas")

    async def run() -> None:
        launcher = Launcher(folder, Inline(), SystemClock(), kept)
        with pytest.raises(LehrError):
            await launcher.start(
                TerraformProvider(path=str(program), sha256=sha256(program), config={"stroe": "x"}), {}
            )

    asyncio.run(run())
    assert kept.known(sha256(program)) is not None
