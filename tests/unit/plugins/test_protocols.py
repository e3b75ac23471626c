"""What is generated from definitions of protocols is up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.protocols import DEFINITIONS, generate


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda path: str(path.stem))
def test_generated_files_are_those_of_the_definition(definition: Path, tmp_path: Path) -> None:
    generate(definition, tmp_path)
    for found in tmp_path.iterdir():
        assert found.read_bytes() == (definition.parent / found.name).read_bytes(), (
            f"{found.name} is stale: run python scripts/protocols.py"
        )
    assert {found.suffix for found in tmp_path.iterdir()} == {".binpb", ".pyi"}
