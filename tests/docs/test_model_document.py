"""The page about service models: its examples are valid, and every field is there, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from lehr.model.asset import AssetId
from lehr.service_models import MODELS, Cluster, Database, Files, Service, WebService
from lehr.service_models.database import DatabaseServer, Rows
from lehr.service_models.files import Template
from lehr.service_models.service import ServicePlace
from tests.integration.service_models.test_shakespeare_workspace import generate, problems

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "models.md").read_text()

_WITHIN: dict[type[msgspec.Struct], dict[str, type[msgspec.Struct]]] = {
    Service: {"places.NAME": ServicePlace},
    WebService: {"clusters.NAME": Cluster},
    Database: {"server": DatabaseServer, "rows.TABLE": Rows},
    Files: {"files.FILE": Template},
}


def section(model: str) -> str:
    return PAGE.partition(f"\n## `{model}`\n")[2].partition("\n## ")[0]


BLOCKS = dict(re.findall(r"^```\w+\n# (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
WORKSPACE: dict[str, str | bytes] = {"lehr.yaml": "partition: test\n", **BLOCKS}


def test_the_examples_are_a_workspace_without_a_word_of_complaint() -> None:
    made = generate(WORKSPACE)
    assert problems(made) == []
    models, types, places = 4 + 8 + 2 + 2, 2, 2
    assert len(made.assets) == models + types + places
    placed = made.assets[AssetId("shop/eu/job")].document()["addons"]["shop.InPlace"]
    assert placed == {"place": "place/eu"}


def test_a_place_that_nobody_declares_is_an_error() -> None:
    made = generate({**WORKSPACE, "services/shop.yaml": BLOCKS["services/shop.yaml"].replace("us:", "usa:")})
    assert any("VAL" in problem and "place/usa" in problem for problem in problems(made))


def test_every_model_has_a_section() -> None:
    assert re.findall(r"^## `(.+)`$", PAGE, re.MULTILINE) == list(MODELS)


@pytest.mark.parametrize("kind", _WITHIN, ids=lambda kind: str(kind.__name__))
def test_every_field_is_described_and_no_other(kind: type[msgspec.Struct]) -> None:
    model = msgspec.structs.fields(kind)[0].default
    described = re.findall(r"^\| `([^`]+)` \|", section(model), re.MULTILINE)
    fields = {field.name for field in msgspec.structs.fields(kind)}
    for prefix, inner in _WITHIN[kind].items():
        fields |= {f"{prefix}.{field.name}" for field in msgspec.structs.fields(inner)}
    assert set(described) == fields - {"clusters"}
    assert len(set(described)) == len(described)
