"""Templates belong to the code of the generators that name them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from lehr.base.blocking import Inline
from lehr.base.diagnostics import Diagnostic
from lehr.generate.engine.client import GenerationWorker
from lehr.model.asset import Asset, AssetId
from tests.snapshots import MemorySnapshot

CODE = """\
from lehr.sdk.generator import asset, for_all_assets, for_each_file
from lehr.sdk.templates import render

@for_each_file("names/*.txt", templates="templates/*.j2")
def pages(file):
    name = file.path.removeprefix("names/").removesuffix(".txt")
    yield asset(name, "lehr.File", {"path": name, "content": render("templates/page.j2", name=name)})

@for_all_assets("lehr.File", makes="lehr.Symlink", templates="templates/*.j2")
def links(files):
    text = render("templates/index.j2", n=len(files))
    yield asset("index", "lehr.Symlink", {"path": "index", "target": text})
"""
START = {
    "lehr.yaml": "partition: test\n",
    "generators/g.py": CODE,
    "names/a.txt": "",
    "names/b.txt": "",
    "templates/page.j2": "page {{ name }}",
    "templates/index.j2": "{{ n }} pages",
}


class Made(NamedTuple):
    """The result for one snapshot; what the worker returns changes with the next."""

    diagnostics: tuple[Diagnostic, ...]
    assets: dict[AssetId, Asset]


def generate(*snapshots: Mapping[str, str]) -> list[Made]:
    async def main() -> list[Made]:
        worker = GenerationWorker("lehr.wiring:registry", Inline())
        try:
            found = [await made(worker, files) for files in snapshots]
        finally:
            await worker.close()
        return found

    return asyncio.run(main())


async def made(worker: GenerationWorker, files: Mapping[str, str]) -> Made:
    found = await worker.generate(MemorySnapshot(files))
    return Made(tuple(found.diagnostics), dict(found.assets))


def texts(made: Made) -> dict[str, str]:
    assert made.diagnostics == ()
    payloads = {asset.id: asset.document()["payload"] for asset in made.assets.values()}
    return {id: payload.get("content", payload.get("target")) for id, payload in payloads.items()}


def test_a_change_of_a_template_changes_what_is_made_with_it_as_a_clean_build_would() -> None:
    later = START | {
        "templates/page.j2": "{% include 'templates/part.j2' %}",
        "templates/part.j2": "{{ name }}!",
    }
    last = later | {"templates/part.j2": "{{ name }}?", "names/c.txt": ""}
    steps = generate(START, later, last)
    assert texts(steps[0]) == {"a": "page a", "b": "page b", "index": "2 pages"}
    assert texts(steps[1]) == {"a": "a!", "b": "b!", "index": "2 pages"}
    assert texts(steps[2]) == {"a": "a?", "b": "b?", "c": "c?", "index": "3 pages"}
    (clean,) = generate(last)
    assert {id: asset.digest for id, asset in clean.assets.items()} == {
        id: asset.digest for id, asset in steps[2].assets.items()
    }


def test_a_template_that_is_gone_or_wrong_is_reported_where_it_is_used() -> None:
    wrong = START | {"templates/page.j2": "page\n{{ nam }}"}
    gone = {path: text for path, text in START.items() if path != "templates/page.j2"}
    for found, at in zip(generate(wrong, gone), ("templates/page.j2:2:4", "templates/page.j2"), strict=True):
        assert {(item.code, str(item.at)) for item in found.diagnostics} == {("GEN039", at)}


def test_a_pattern_of_templates_that_is_not_valid_is_reported() -> None:
    (found,) = generate(START | {"generators/g.py": CODE.replace("templates/*.j2", "/templates/[")})
    assert {item.code for item in found.diagnostics} == {"GEN030"}
    assert all("is not valid" in item.what for item in found.diagnostics)


def test_templates_are_no_modules() -> None:
    code = CODE.replace("from lehr.sdk.templates", "import page\nfrom lehr.sdk.templates")
    (found,) = generate(START | {"generators/g.py": code})
    assert [item.code for item in found.diagnostics] == ["GEN020"]
