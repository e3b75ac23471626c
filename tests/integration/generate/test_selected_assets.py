"""Generators over the assets of a selector."""

from __future__ import annotations

import asyncio

import pytest

from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Diagnostic
from lehr.query.graph import generator_graph
from lehr.sdk.generation import Generated
from lehr.testing.samples import registry
from lehr.testing.sim.generation import InlineGeneration
from tests.snapshots import MemorySnapshot

CODE = """
from lehr.sdk.generator import *

@for_each_asset("sample.*", ids="web-*", labels={"tier": "web"}, makes="sample.Route")
def routes(thing):
    yield asset(f"route/{thing.id}", "sample.Route", {"path": "/", "service": thing.id})
"""
OWNED = """
from lehr.sdk.generator import *

@for_each_asset("sample.Service", ids="web-*", labels={"tier": "web"}, makes="sample.Route")
def routes(thing):
    yield asset(f"route/{thing.id}", "sample.Route", {"path": "/", "service": thing.id})

@for_all_assets(labels={"tier": "web"})
def owned(things):
    for thing in things:
        yield annotate(thing.id, "lehr.Owner", {"team": f"one of {len(things)}"})
"""


def service(id: str, tier: str | None = None) -> str:
    addons = "" if tier is None else f", addons: {{lehr.Labels: {{labels: {{tier: {tier}}}}}}}"
    return f"{{id: {id}, type: sample.Service{addons}}}\n"


def made(*snapshots: dict[str, str], code: str = OWNED) -> Generated:
    async def main() -> Generated:
        generation = InlineGeneration(registry(), SystemClock())
        for files in snapshots:
            base: dict[str, str | bytes] = {"lehr.yaml": "partition: test\n", "generators/g.py": code}
            last = await generation.generate(MemorySnapshot({**base, **files}))
        return last

    return asyncio.run(main())


def routes_of(generated: Generated) -> set[str]:
    assert generated.diagnostics == (), generated.diagnostics
    return {str(id) for id in generated.assets if id.startswith("route/")}


def owners_of(generated: Generated) -> dict[str, str]:
    documents = [asset.document() for asset in generated.assets.values()]
    return {
        item["id"]: item["addons"]["lehr.Owner"]["team"]
        for item in documents
        if "lehr.Owner" in item["addons"]
    }


FILES = {
    "assets/a.yaml": service("web-a", "web"),
    "assets/b.yaml": service("web-b", "back"),
    "assets/c.yaml": service("c", "web"),
    "assets/d.yaml": service("web-d"),
}


def test_all_parts_of_a_selector_must_hold() -> None:
    generated = made(FILES)
    assert routes_of(generated) == {"route/web-a"}
    assert owners_of(generated) == {"web-a": "one of 2", "c": "one of 2"}


def test_an_asset_that_is_selected_no_longer_takes_along_what_was_made_of_it() -> None:
    changed = {**FILES, "assets/a.yaml": service("web-a", "back"), "assets/b.yaml": service("web-b", "web")}
    incremental, clean = made(FILES, changed), made(changed)
    assert routes_of(incremental) == {"route/web-b"}
    assert dict(incremental.assets) == dict(clean.assets)


@pytest.mark.parametrize("after", [{"assets/c.yaml": service("c", "back")}, {}], ids=["changed", "gone"])
def test_a_generator_over_all_assets_runs_again_without_one_that_is_selected_no_longer(
    after: dict[str, str],
) -> None:
    rest = {path: text for path, text in FILES.items() if path != "assets/c.yaml"}
    assert owners_of(made(FILES, rest | after)) == {"web-a": "one of 1"}


def test_a_selector_that_may_select_what_is_made_of_it_is_refused() -> None:
    [problem] = made(FILES, code=CODE).diagnostics
    assert isinstance(problem, Diagnostic)
    assert problem.code == "GEN031"


def test_the_graph_shows_selectors_and_what_they_come_after() -> None:
    generated = made(FILES)
    graph = generator_graph(generated.assets.values(), generated.declared)
    assert [(node.of, node.after) for node in graph.generators] == [
        ("id=web-*,type=sample.Service,label:tier=web", ()),
        ("label:tier=web", ("generators/g.py:routes",)),
    ]
