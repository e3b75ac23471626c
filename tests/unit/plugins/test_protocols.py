"""What is generated from definitions of protocols is up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.protocols import COPIES, DEFINITIONS, generate


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda path: str(path.stem))
def test_generated_files_are_those_of_the_definition(definition: Path, tmp_path: Path) -> None:
    generate(definition, tmp_path)
    for found in tmp_path.iterdir():
        assert found.read_bytes() == (definition.parent / found.name).read_bytes(), (
            f"{found.name} is stale: run python scripts/protocols.py"
        )
    assert {found.suffix for found in tmp_path.iterdir()} == {".binpb", ".pyi"}


@pytest.mark.parametrize("copy", COPIES, ids=lambda path: str(path.parts[-3]))
def test_copies_in_examples_are_up_to_date(copy: Path) -> None:
    assert copy.read_bytes() == DEFINITIONS[0].read_bytes(), "stale: run python scripts/protocols.py"
