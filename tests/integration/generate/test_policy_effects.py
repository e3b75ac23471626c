"""What policies change and make, in builds of whole workspaces one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lehr.base.clock import SystemClock
from lehr.base.diagnostics import errors
from lehr.generate.engine.build import Build
from lehr.generate.engine.memo import Memo
from lehr.generate.engine.runs import Run
from lehr.generate.outcome.protocol import Changed, SandboxLimits
from lehr.generate.policies.derived_assets import DerivingRule
from lehr.generate.policies.mutations import Mutations
from lehr.generate.sandbox import forks
from lehr.model.asset import Asset, AssetId
from lehr.model.policy import POLICY, POLICY_TYPE
from lehr.model.types import Registry
from lehr.query.graph import generator_graph
from lehr.sdk.generation import Generated
from lehr.testing.samples import registry
from lehr.testing.sim.generation import InlineGeneration
from tests.snapshots import MemorySnapshot

SERVICES = {"select": {"types": ["sample.Service"]}}
THREE = {"name": "three", "default": {"payload": {"replicas": 3}}}
ROUTE = {
    "name": "route",
    "asset": {
        "id": "{{ id }}/route",
        "type": "sample.Route",
        "payload": {"path": "/{{ payload.replicas }}", "service": "{{ id }}"},
    },
}


def known_types() -> Registry:
    return Registry((*registry().types.values(), POLICY_TYPE), registry().addons)


def policy(id: str = "policies/p", match: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
    return {"id": id, "type": POLICY, "payload": {"match": match or SERVICES, **parts}}


def service(id: str, **payload: Any) -> dict[str, Any]:
    return {"id": id, "type": "sample.Service", "payload": payload}


class Workspace:
    """Files, and what a generation that has seen all their former states makes of them."""

    def __init__(self) -> None:
        self.generation = InlineGeneration(known_types(), SystemClock())
        self.files: dict[str, str | bytes] = {"lehr.yaml": "partition: test\n"}

    def declare(self, file: str, *assets: dict[str, Any]) -> Workspace:
        """In lines: an asset in each."""
        lines = (f"- {msgspec.json.encode(item).decode()}\n" for item in assets)
        self.files[f"assets/{file}.yaml"] = "".join(lines)
        return self

    def made(self) -> Generated:
        made = asyncio.run(self.generation.generate(MemorySnapshot(self.files)))
        clean = InlineGeneration(known_types(), SystemClock())
        whole = asyncio.run(clean.generate(MemorySnapshot(self.files)))
        assert made.diagnostics == whole.diagnostics
        if not errors(made.diagnostics):
            assert dict(made.assets) == dict(whole.assets)
        return made

    def assets(self) -> dict[str, Asset]:
        made = self.made()
        assert made.diagnostics == ()
        return {str(id): asset for id, asset in made.assets.items()}

    def problems(self) -> list[tuple[str, str]]:
        return [(item.code, str(item.at)) for item in self.made().diagnostics]


def replicas(asset: Asset) -> int:
    count: int = asset.document()["payload"]["replicas"]
    return count


@contextmanager
def counted(kind: type, method: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Ids of the assets that `method` is called with."""
    calls: list[str] = []
    real = getattr(kind, method)

    def noting(self: Any, asset: Asset, *rest: Any) -> Any:
        calls.append(asset.id)
        return real(self, asset, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(kind, method, noting)
        yield calls


# --- what is put on assets ---------------------------------------------------------------


def test_what_is_put_is_seen_by_whoever_reads_assets() -> None:
    workspace = Workspace().declare("p", policy(mutate=[THREE])).declare("a", service("web"))
    workspace.files["generators/g.py"] = (
        "from lehr.sdk.generator import *\n"
        "@for_each_asset('sample.Service', makes='sample.Policy')\n"
        "def told(one):\n"
        "    yield asset(one.id + '/told', 'sample.Policy', {'text': str(one.payload['replicas'])})\n"
    )
    assets = workspace.assets()
    assert assets["web/told"].document()["payload"]["text"] == "3"
    workspace.declare("p", policy(mutate=[{"name": "four", "default": {"payload": {"replicas": 4}}}]))
    assert workspace.assets()["web/told"].document()["payload"]["text"] == "4"


def test_assets_of_generators_are_changed_as_any_other() -> None:
    workspace = Workspace().declare("p", policy(mutate=[THREE]))
    workspace.files["services/x.yaml"] = "{}\n"
    workspace.files["generators/g.py"] = (
        "from lehr.sdk.generator import *\n"
        "@for_each_file('services/*.yaml')\n"
        "def made(file):\n"
        "    yield asset('left-out', 'sample.Service', {})\n"
        "    yield asset('said', 'sample.Service', {'replicas': 1})\n"
    )
    assets = workspace.assets()
    assert (replicas(assets["left-out"]), replicas(assets["said"])) == (3, 1)
    assert assets["left-out"].made_by is not None


@pytest.mark.parametrize("many", [3, 300])
def test_what_is_left_out_is_known_of_each_asset_of_a_file(many: int) -> None:
    some = [service(f"s{number}", **({"replicas": 1} if number % 3 else {})) for number in range(many)]
    assets = Workspace().declare("a", *some).declare("p", policy(mutate=[THREE])).assets()
    assert [replicas(assets[f"s{number}"]) for number in range(many)] == [
        1 if number % 3 else 3 for number in range(many)
    ]


def test_annotations_are_seen_and_stay() -> None:
    owned = {"name": "owned", "default": {"addons": {"lehr.Owner": {"team": "nobody", "contact": "#all"}}}}
    workspace = Workspace().declare("p", policy(mutate=[owned])).declare("a", service("web"), service("db"))
    workspace.files["generators/g.py"] = (
        "from lehr.sdk.generator import *\n"
        "@for_each_asset('sample.Service', ids='web')\n"
        "def owners(one):\n"
        "    yield annotate(one.id, 'lehr.Owner', {'team': 'web', 'contact': ''})\n"
    )
    assets = workspace.assets()
    assert assets["web"].document()["addons"]["lehr.Owner"] == {"team": "web", "contact": ""}
    assert assets["db"].document()["addons"]["lehr.Owner"] == {"team": "nobody", "contact": "#all"}


def test_a_policy_that_goes_takes_what_it_put_with_it() -> None:
    workspace = Workspace().declare("p", policy(mutate=[THREE])).declare("a", service("web"))
    assert replicas(workspace.assets()["web"]) == 3
    del workspace.files["assets/p.yaml"]
    web = workspace.assets()["web"]
    assert (replicas(web), web.annotated_by) == (1, ())


def test_only_what_has_changed_is_changed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace().declare("p", policy(mutate=[THREE]))
    for name in ("a", "b", "c"):
        workspace.declare(name, service(name))
    workspace.made()
    workspace.declare("b", service("b", owner="x"))
    generation = workspace.generation
    with counted(Mutations, "applied", monkeypatch) as calls:
        asyncio.run(generation.generate(MemorySnapshot(workspace.files)))
    assert calls == ["b"]


def test_a_policy_that_changes_changes_anew_what_it_is_about_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace().declare("a", service("a"), service("b/1"), service("b/2"))
    of_b = policy("policies/b", {"select": {"ids": ["b/*"]}}, mutate=[THREE])
    workspace.declare("p", policy("policies/a", mutate=[{"name": "x", "set": {"payload": {"owner": "x"}}}]))
    workspace.declare("q", of_b)
    workspace.made()
    of_b["payload"]["mutate"] = [{"name": "three", "default": {"payload": {"replicas": 5}}}]
    workspace.declare("q", of_b)
    with counted(Mutations, "applied", monkeypatch) as calls:
        made = asyncio.run(workspace.generation.generate(MemorySnapshot(workspace.files)))
    assert {id for id in calls if id != "policies/b"} == {"b/1", "b/2"}
    assert replicas(made.assets[AssetId("b/1")]) == 5
    of_b["payload"]["description"] = "other words are no other policy"
    workspace.declare("q", of_b)
    with counted(Mutations, "applied", monkeypatch) as calls:
        asyncio.run(workspace.generation.generate(MemorySnapshot(workspace.files)))
    assert set(calls) <= {"policies/b"}


def test_a_conflict_holds_everything_back_until_it_is_mended() -> None:
    five = {"name": "five", "default": {"payload": {"replicas": 5}}}
    workspace = Workspace().declare("a", service("web")).declare("p", policy(mutate=[THREE]))
    workspace.declare("q", policy("policies/q", mutate=[five]))
    assert workspace.problems() == [("GEN041", "assets/q.yaml:1:149")]
    workspace.declare("a", service("web", replicas=1))
    assert replicas(workspace.assets()["web"]) == 1


def test_what_cannot_be_understood_is_told_once_with_its_place_and_everything_else_with_it() -> None:
    wrong = [
        {"name": "a", "set": {"payload": {"owner": "{{ payload. }}"}}},
        {"name": "b", "default": {"payload": {"owner": "{{ nobody }}"}}},
    ]
    rules = [{"name": "c", "require": "1 +", "message": "m"}]
    workspace = Workspace().declare("a", service("web"), service("db"))
    workspace.declare("p", policy(mutate=wrong, rules=rules), policy("policies/q", rules=rules))
    assert [code for code, _ in workspace.problems()] == ["VAL062"] * 4
    assert all(
        place.startswith(("assets/p.yaml:1:", "assets/p.yaml:2:")) for _, place in workspace.problems()
    )


def test_places_are_those_of_the_newest_revision_even_if_nothing_but_them_has_changed() -> None:
    """The same policies, but each word stands elsewhere on its line."""
    text = (
        "id: policies/p\ntype: lehr.Policy\npayload:\n  match: {select: {types: [sample.Service]}}\n"
        "  mutate: [{name: m, set: {payload: {owner: '{{ payload.nobody }}'}}}]\n"
    )
    made = (
        "id: policies/q\ntype: lehr.Policy\npayload:\n  match: {select: {types: [sample.Service]}}\n"
        "  generate: [{name: g, asset: {id: '{{ payload.nobody }}', type: sample.Route}}]\n"
    )
    workspace = Workspace().declare("a", service("web"))
    workspace.files |= {"assets/p.yaml": text, "assets/q.yaml": made}
    places = workspace.problems()
    assert [code for code, _ in places] == ["GEN040", "GEN040"]
    workspace.files["assets/p.yaml"] = text.replace("mutate: [", "mutate:    [")
    workspace.files["assets/q.yaml"] = made.replace("generate: [", "generate:    [")
    assert not set(workspace.problems()) & set(places)


# --- what is made ------------------------------------------------------------------------


def test_an_asset_is_made_for_each_that_matches_and_goes_with_it() -> None:
    workspace = Workspace().declare("p", policy(mutate=[THREE], generate=[ROUTE]))
    workspace.declare("a", service("a"), service("b", replicas=2))
    assets = workspace.assets()
    assert assets["a/route"].document()["payload"] == {"path": "/3", "service": "a"}
    assert assets["b/route"].document()["payload"] == {"path": "/2", "service": "b"}
    made_by = assets["a/route"].made_by
    assert made_by is not None
    assert (made_by.generator, made_by.item) == ("assets/p.yaml:policies/p/route", "a")
    assert (made_by.module, made_by.line) == ("assets/p.yaml", 1)
    workspace.declare("a", service("b"))
    assert set(workspace.assets()) == {"policies/p", "b", "b/route"}


def test_what_no_longer_matches_has_nothing_made_for_it() -> None:
    few = {**SERVICES, "where": "payload.replicas > 1"}
    workspace = Workspace().declare("p", policy(match=few, generate=[ROUTE]))
    workspace.declare("a", service("a", replicas=2))
    assert "a/route" in workspace.assets()
    workspace.declare("a", service("a"))
    assert "a/route" not in workspace.assets()


def test_only_for_what_has_changed_anything_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace().declare("p", policy(generate=[ROUTE]))
    for name in ("a", "b", "c"):
        workspace.declare(name, service(name))
    workspace.made()
    workspace.declare("b", service("b", replicas=9))
    with counted(DerivingRule, "output", monkeypatch) as calls:
        asyncio.run(workspace.generation.generate(MemorySnapshot(workspace.files)))
    assert calls == ["b"]


def test_what_is_made_is_changed_by_policies_and_read_by_generators() -> None:
    labelled = {
        "name": "l",
        "set": {"addons": {"lehr.Labels": {"labels": {"made": "for {{ payload.service }}"}}}},
    }
    workspace = Workspace().declare("a", service("web"))
    workspace.declare("p", policy(generate=[ROUTE]))
    workspace.declare("q", policy("policies/q", {"select": {"types": ["sample.Route"]}}, mutate=[labelled]))
    workspace.files["generators/g.py"] = (
        "from lehr.sdk.generator import *\n"
        "@for_each_asset('sample.Route', makes='sample.Policy')\n"
        "def told(one):\n"
        "    text = one.addons['lehr.Labels']['labels']['made']\n"
        "    yield asset(one.id + '/told', 'sample.Policy', {'text': text})\n"
    )
    assert workspace.assets()["web/route/told"].document()["payload"]["text"] == "for web"


def test_what_its_template_leaves_out_nobody_has_written() -> None:
    back = {"name": "back", "asset": {"id": "{{ id }}/s", "type": "sample.Service", "payload": {}}}
    workspace = Workspace().declare("a", {"id": "x", "type": "sample.Policy", "payload": {}})
    workspace.declare("p", policy(match={"select": {"types": ["sample.Policy"]}}, generate=[back]))
    workspace.declare("q", policy("policies/q", mutate=[THREE]))
    assert replicas(workspace.assets()["x/s"]) == 3


def test_two_that_are_made_with_one_id_are_told_with_what_they_are_made_of() -> None:
    same = {"name": "same", "asset": {"id": "same", "type": "sample.Policy"}}
    workspace = Workspace().declare("p", policy(generate=[same])).declare("a", service("b"), service("a"))
    (found,) = workspace.made().diagnostics
    assert found.code == "GEN008"
    assert "`same`" in found.what
    assert "`b`" in found.what
    assert "assets/p.yaml:1" in found.why
    assert "`a`" in found.why


def test_it_is_turned_down_with_what_it_is_made_for() -> None:
    web = {**service("web"), "addons": {"lehr.Turndown": {"reason": "replaced"}}}
    workspace = Workspace().declare("a", web).declare("p", policy(generate=[ROUTE]))
    addons = workspace.assets()["web/route"].document()["addons"]
    assert addons["lehr.Turndown"]["reason"] == "replaced"


@pytest.mark.parametrize("match", [{"select": {"all": True}}, {"select": {"ids": ["*"]}}, {"where": "true"}])
def test_a_policy_that_may_match_what_it_makes_is_an_error_and_no_loop(match: dict[str, Any]) -> None:
    workspace = Workspace().declare("p", policy(match=match, generate=[ROUTE])).declare("a", service("web"))
    ((code, place),) = workspace.problems()
    assert code == "GEN031"
    assert place.startswith("assets/p.yaml:1:")
    workspace.declare("p", policy(generate=[ROUTE]))
    assert "web/route" in workspace.assets()


def test_policies_that_match_what_each_other_makes_are_an_error_that_names_them() -> None:
    back = {"name": "back", "asset": {"id": "{{ id }}/back", "type": "sample.Service"}}
    workspace = Workspace().declare("a", service("web"))
    workspace.declare("p", policy(generate=[ROUTE]))
    workspace.declare("q", policy("policies/q", {"select": {"types": ["sample.Route"]}}, generate=[back]))
    workspace.files["generators/g.py"] = (
        "from lehr.sdk.generator import *\n"
        "@for_each_asset('sample.Service', makes='sample.Policy')\n"
        "def told(one):\n"
        "    yield asset(one.id + '/told', 'sample.Policy', {'text': 'x'})\n"
    )
    (found,) = workspace.made().diagnostics
    assert found.code == "GEN031"
    assert "policies/p/route" in found.what
    assert "policies/q/back" in found.what
    del workspace.files["assets/q.yaml"]
    assert "web/told" in workspace.assets()  # what had to wait for the order runs


def test_what_is_made_and_does_not_fit_is_told_at_its_line_for_whom() -> None:
    wrong = {
        "name": "w",
        "asset": {"id": "{{ id }}/x", "type": "sample.Route", "payload": {"path": "{{ id }}"}},
    }
    workspace = Workspace().declare("p", policy(generate=[wrong])).declare("a", service("web"))
    found = workspace.made().diagnostics
    assert {item.code for item in found} == {"GEN007"}
    assert all("`w`" in item.why and "`web`" in item.why for item in found)
    assert all(item.at is not None and item.at.column > 1 for item in found)


def test_an_unknown_type_of_what_is_made_is_told_even_if_nothing_matches() -> None:
    wrong = {"name": "w", "asset": {"id": "x", "type": "sample.Rout"}}
    (found,) = Workspace().declare("p", policy(generate=[wrong])).made().diagnostics
    assert (found.code, found.fix) == ("GEN005", "did you mean `sample.Route`?")


def test_fields_and_addons_that_there_are_not_are_told_even_if_nothing_matches() -> None:
    wrong = [
        {
            "name": "a",
            "set": {"payload": {"replica": 2, "owner": "{{ id }}"}, "addons": {"lehr.Owner": {"tea": "x"}}},
        },
        {"name": "b", "default": {"addons": {"lehr.Label": {"labels": {"a": "b"}}}}},
    ]
    route = {"id": "x", "type": "sample.Route", "payload": {"path": "/", "port": "{{ id }}"}}
    workspace = Workspace().declare("p", policy(mutate=wrong, generate=[{"name": "c", "asset": route}]))
    found = workspace.made().diagnostics
    assert [(item.code, item.what) for item in found] == [
        ("GEN007", "no sample.Service has a field `/replica`"),
        ("GEN007", "lehr.Owner has no field `/tea`"),
        ("GEN006", "there is no addon type `lehr.Label`"),
        ("GEN007", "no sample.Route has a field `/port`"),
    ]
    assert len({item.at for item in found}) == 4
    assert [item.fix for item in found][:3] == [
        f"did you mean `{x}`?" for x in ("replicas", "team", "lehr.Labels")
    ]


@pytest.mark.parametrize("verb", ["set", "default"])
def test_no_policy_takes_what_it_matches_out_of_production(verb: str) -> None:
    gone = {"name": "gone", verb: {"addons": {"lehr.Turndown": {"reason": "tidying up"}}}}
    workspace = Workspace().declare("p", policy(mutate=[gone])).declare("a", service("a"))
    assert [code for code, _ in workspace.problems()] == ["GEN044"]


def test_types_that_are_not_known_here_may_be_known_elsewhere() -> None:
    match = {"select": {"types": ["sample.Service", "elsewhere.Thing"]}}
    colour = {"name": "a", "default": {"payload": {"colour": "red"}}}
    assert Workspace().declare("p", policy(match=match, mutate=[colour])).made().diagnostics == ()


def test_what_nobody_has_written_is_known_after_a_start_from_what_was_kept(tmp_path: Path) -> None:
    workspace = Workspace().declare("a", service("out"), service("said", replicas=1))

    def built(changes: dict[str, str | bytes]) -> dict[str, Asset]:
        """By a process that has kept what the one before it made."""
        memo = Memo(tmp_path / "memo")
        files = {**workspace.files, **changes}

        def fetch(paths: list[str]) -> Iterator[bytes]:
            fetched.extend(paths)
            return map(MemorySnapshot(files).read, paths)

        run = Run(SandboxLimits(), SystemClock(), forks.run, forks.run)
        build = Build(known_types(), fetch, run, memo)
        built = build.build(Changed(tuple(MemorySnapshot(files).files().values()), (), ()))
        assert built.diagnostics == ()
        for _ in build.idle():
            pass
        memo.close()
        return {str(asset.id): asset for asset in built.upserts}

    fetched: list[str] = []
    built({})
    fetched.clear()
    workspace.declare("p", policy(mutate=[THREE]))
    assets = built({})
    assert (replicas(assets["out"]), replicas(assets["said"])) == (3, 1)
    assert "assets/a.yaml" not in fetched


def test_a_policy_that_is_made_of_assets_judges_and_no_more() -> None:
    workspace = Workspace().declare("a", service("web"))
    workspace.files["generators/g.py"] = (
        "from lehr.sdk.generator import *\n"
        "@for_each_asset('sample.Service', makes='lehr.Policy')\n"
        "def policies(one):\n"
        "    match = {'select': {'types': ['sample.Service']}}\n"
        "    rules = [{'name': 'r', 'require': 'true', 'message': 'm'}]\n"
        "    yield asset('judges', 'lehr.Policy', {'match': match, 'rules': rules})\n"
    )
    assert "judges" in workspace.assets()
    text = str(workspace.files["generators/g.py"])
    workspace.files["generators/g.py"] = text.replace(
        "'rules': rules", "'mutate': [{'name': 'm', 'set': {'payload': {'replicas': 2}}}]"
    )
    assert [code for code, _ in workspace.problems()] == ["GEN043"]
    workspace.files["generators/g.py"] = text
    assert "judges" in workspace.assets()


def test_a_policy_that_is_made_of_files_changes_and_makes_assets() -> None:
    workspace = Workspace().declare("a", service("web"))
    workspace.files["rules/three.yaml"] = "three: 3\n"
    workspace.files["generators/g.py"] = (
        "from lehr.sdk.generator import *\n"
        "@for_each_file('rules/*.yaml')\n"
        "def policies(file):\n"
        "    match = {'select': {'types': ['sample.Service']}}\n"
        "    mutate = [{'name': 'm', 'default': {'payload': {'replicas': file.yaml()['three']}}}]\n"
        "    generate = [{'name': 'g', 'asset': {'id': '{{ id }}/made', 'type': 'sample.Policy'}}]\n"
        "    yield asset('p', 'lehr.Policy', {'match': match, 'mutate': mutate, 'generate': generate})\n"
    )
    assets = workspace.assets()
    assert replicas(assets["web"]) == 3
    assert assets["web"].annotated_by[0].by.module == "rules/three.yaml"
    assert "web/made" in assets
    workspace.files["rules/three.yaml"] = "three: 4\n"
    assert replicas(workspace.assets()["web"]) == 4


def test_the_graph_shows_what_policies_change_and_make() -> None:
    workspace = Workspace().declare("p", policy(mutate=[THREE], generate=[ROUTE]))
    made = workspace.declare("a", service("a"), service("b", replicas=1)).made()
    graph = generator_graph(made.assets.values(), made.declared)
    nodes = {node.name: node for node in graph.generators}
    assert nodes["assets/p.yaml:policies/p/route"].makes == {"sample.Route": 2}
    assert nodes["assets/p.yaml:policies/p/three"].annotates == {"/payload/replicas": 1}
