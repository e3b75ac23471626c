"""An exclusive directory knows what is declared inside it, and changes when that does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.base.clock import SystemClock
from lehr.base.digest import digest_bytes
from lehr.generate.engine.build import Build
from lehr.generate.engine.memo import Memo
from lehr.generate.engine.runs import Run
from lehr.generate.outcome.protocol import Built, Changed, SandboxLimits
from lehr.model.types import Registry
from lehr.plugins.file.payload import TYPES
from lehr.sdk.source import FileEntry


class Workspace:
    """Asset files in memory, and the assets that a build makes of them."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}
        self._build = Build(Registry(TYPES), self._fetch, Run(SandboxLimits(), SystemClock()), Memo())
        self.change({"lehr.yaml": "partition: shop\n"})

    def change(self, files: Mapping[str, str | None]) -> Built:
        self._contents.update({path: text.encode() for path, text in files.items() if text is not None})
        gone = tuple(path for path, text in files.items() if text is None)
        entries = [
            FileEntry(path, digest_bytes(self._contents[path]), len(self._contents[path]))
            for path, text in files.items()
            if text is not None
        ]
        return self._build.build(Changed(tuple(entries), gone))

    def _fetch(self, paths: list[str]) -> Iterator[bytes]:
        return (self._contents[path] for path in paths)


def declared(built: Built) -> dict[str, list[str]]:
    """What the new and changed directories know."""
    assert not built.diagnostics, built.diagnostics
    documents = [asset.document() for asset in built.upserts if asset.type == "lehr.Directory"]
    return {item["id"]: item["payload"]["declared"] for item in documents}


def directory(id: str, path: str, exclusive: bool = True) -> dict[str, str | None]:
    payload = {"path": path, "exclusive": exclusive}
    return {f"assets/{id}.json": text(id, "lehr.Directory", payload)}


def file(id: str, path: str) -> dict[str, str | None]:
    return {f"assets/{id}.json": text(id, "lehr.File", {"path": path, "content": ""})}


def link(id: str, path: str) -> dict[str, str | None]:
    return {f"assets/{id}.json": text(id, "lehr.Symlink", {"path": path, "target": "x"})}


def text(id: str, type: str, payload: object) -> str:
    return msgspec.json.encode({"id": id, "type": type, "payload": payload}).decode()


def test_files_links_and_directories_inside_are_declared_by_the_name_that_leads_to_them() -> None:
    start = directory("d", "conf.d") | file("a", "conf.d/a") | link("b", "conf.d/b")
    start |= file("deep", "conf.d/sub/x/y") | directory("e", "conf.d/e", exclusive=False)
    start |= file("beside", "conf.d.old/a") | file("above", "a")
    assert declared(Workspace().change(start)) == {"d": ["a", "b", "e", "sub"], "e": []}


def test_the_directory_changes_exactly_when_what_is_declared_inside_does() -> None:
    workspace = Workspace()
    workspace.change(directory("d", "conf.d") | file("a", "conf.d/a") | file("o", "other/o"))
    assert declared(workspace.change(file("b", "conf.d/b"))) == {"d": ["a", "b"]}
    assert declared(workspace.change(file("o", "other/p"))) == {}
    assert declared(workspace.change(file("b", "elsewhere/b"))) == {"d": ["a"]}
    assert declared(workspace.change({"assets/a.json": None})) == {"d": []}


def test_a_directory_that_becomes_exclusive_knows_what_was_declared_before() -> None:
    workspace = Workspace()
    workspace.change(directory("d", "conf.d", exclusive=False) | file("a", "conf.d/a"))
    assert declared(workspace.change(directory("d", "conf.d"))) == {"d": ["a"]}
    assert declared(workspace.change(directory("d", "conf.d", exclusive=False))) == {"d": []}


def test_nested_exclusive_directories_each_know_their_own() -> None:
    start = directory("d", "/etc/d") | directory("e", "/etc/d/e") | file("a", "/etc/d/e/a")
    assert declared(Workspace().change(start)) == {"d": ["e"], "e": ["a"]}


@pytest.mark.parametrize(
    ("folder", "inside", "names"),
    [
        ("/srv/shop/conf.d", "conf.d/a", ["a"]),
        ("/srv/shop/conf.d", "shop/conf.d/sub/a", ["sub"]),
        ("conf.d", "/srv/shop/conf.d/a", ["a"]),
        ("conf.d", "/srv/my-conf.d/a", []),
        ("/srv/conf.d", "/other/conf.d/a", []),
        ("conf.d", "shop/conf.d/a", []),
    ],
)
def test_a_relative_path_that_may_lead_inside_counts_as_declared(
    folder: str, inside: str, names: list[str]
) -> None:
    assert declared(Workspace().change(directory("d", folder) | file("a", inside))) == {"d": names}


def test_a_change_that_was_refused_is_not_lost() -> None:
    workspace = Workspace()
    workspace.change(directory("d", "conf.d") | file("a", "conf.d/a"))
    refused = workspace.change(file("b", "conf.d/b") | {"assets/bad.json": "{}"})
    assert refused.diagnostics
    assert declared(workspace.change({"assets/bad.json": None})) == {"d": ["a", "b"]}


PLACES = ("d", "d/e", "/d", "/d/e", "o")
IDS = ("a", "b", "c")
CHANGES = st.dictionaries(
    st.sampled_from(IDS),
    st.none() | st.tuples(st.sampled_from(["file", "exclusive", "plain"]), st.sampled_from(PLACES)),
    min_size=1,
)


@given(st.lists(CHANGES, min_size=1, max_size=6))
def test_step_by_step_results_in_the_same_as_at_once(steps: list[dict[str, tuple[str, str] | None]]) -> None:
    workspace, files = Workspace(), dict[str, str | None]()
    known: dict[str, list[str]] = {}
    for step in steps:
        change: dict[str, str | None] = {}
        for id, item in step.items():
            match item:
                case None:
                    change |= {f"assets/{id}.json": None} if files.get(f"assets/{id}.json") else {}
                case ("file", place):
                    change |= file(id, f"{place}/{id}")
                case (kind, place):
                    change |= directory(id, f"{place}/{id}" if id == "c" else place, kind == "exclusive")
        files |= change
        built = workspace.change(change)
        known |= declared(built)
        for id in built.removals:
            known.pop(id, None)
        for asset in built.upserts:
            if asset.type != "lehr.Directory":
                known.pop(asset.id, None)
    assert known == declared(Workspace().change({path: text for path, text in files.items() if text}))
