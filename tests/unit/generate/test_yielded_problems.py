"""What is wrong with an asset that a generator yielded says which asset, and what it was made of."""

from __future__ import annotations

import json

import pytest

from lehr.generate.engine.records import output_of
from lehr.generate.engine.schedule import Generator
from lehr.generate.sandbox.authors import CallOutput, FoundGenerator, Record
from lehr.model.types import Registry
from lehr.plugins.file.payload import TYPES
from lehr.sdk.generator import Declaration, Reads


@pytest.mark.parametrize(
    ("reads", "item", "made_of"),
    [
        (Reads.FILE, "services/shop.yaml", "`shop/page`, made from services/shop.yaml"),
        (Reads.ASSET, "shop/site", "`shop/page`, made from shop/site"),
        (Reads.FILES, "*", "`shop/page`"),
    ],
)
def test_a_problem_names_the_asset_and_its_input(reads: Reads, item: str, made_of: str) -> None:
    document = {"id": "shop/page", "type": "lehr.File", "payload": {"path": "x", "contents": "y"}}
    answer = CallOutput((Record("shop/page", json.dumps(document).encode(), None, 7),))
    generator = Generator(
        "generators/g.py", FoundGenerator("g", Declaration(reads, "any", ("lehr.File",)), 3)
    )
    problems = output_of(answer, generator, "inputs", item, Registry(TYPES)).diagnostics
    assert problems
    for problem in problems:
        assert problem.why.endswith(f"it is in {made_of}")
        assert problem.at is not None
        assert (problem.at.file, problem.at.line) == ("generators/g.py", 7)
