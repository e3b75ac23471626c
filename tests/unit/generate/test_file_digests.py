"""New content of a file is new content of every asset that names it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from lehr.base.clock import SystemClock
from lehr.base.digest import digest_bytes
from lehr.generate.engine.build import Build
from lehr.generate.engine.memo import Memo
from lehr.generate.engine.runs import Run
from lehr.generate.outcome.protocol import Built, Changed, SandboxLimits
from lehr.model.secret import Secret
from lehr.model.types import AssetType, Registry
from lehr.model.workspace_file import MOST_TEXT_BYTES, WorkspaceFile, WorkspaceText
from lehr.sdk.source import FileEntry


class Account(msgspec.Struct, frozen=True):
    password: Secret
    note: str = ""


class Page(msgspec.Struct, frozen=True):
    source: WorkspaceFile | None = None


class Times(msgspec.Struct, frozen=True):
    source: WorkspaceText


class Workspace:
    """Files in memory, and what a build makes of each change of them."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}
        registry = Registry(
            [AssetType("test.Account", Account), AssetType("test.Page", Page), AssetType("test.Times", Times)]
        )
        self._build = Build(registry, self._fetch, Run(SandboxLimits(), SystemClock()), Memo())

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


def account(id: str, reference: str) -> str:
    return msgspec.json.encode(
        {"id": id, "type": "test.Account", "payload": {"password": {"secret": reference}}}
    ).decode()


def references(built: Built) -> dict[str, Any]:
    return {asset.id: asset.document()["payload"]["password"]["digest"] for asset in built.upserts}


START = {
    "lehr.yaml": "partition: shop\n",
    "assets/a.json": account("a", "age:secrets/db.age#a"),
    "assets/b.json": account("b", "env:B"),
    "secrets/db.age": "one",
}


def test_references_to_encrypted_files_hold_the_digest_of_the_file() -> None:
    built = Workspace().change(START)
    assert not built.diagnostics
    assert references(built) == {"a": digest_bytes(b"one"), "b": None}


def test_a_new_ciphertext_changes_exactly_the_assets_that_refer_to_it() -> None:
    workspace = Workspace()
    workspace.change(START)
    for content in ("two", "three"):
        changed = workspace.change({"secrets/db.age": content})
        assert references(changed) == {"a": digest_bytes(content.encode())}


def test_a_file_that_comes_or_goes_is_noticed() -> None:
    workspace = Workspace()
    workspace.change(START)
    assert references(workspace.change({"secrets/db.age": None})) == {"a": None}
    assert references(workspace.change({"secrets/db.age": "one"})) == {"a": digest_bytes(b"one")}


def test_a_digest_that_somebody_has_written_down_does_not_count() -> None:
    written = account("a", "age:secrets/db.age").replace('"secret"', '"digest": "forged", "secret"')
    built = Workspace().change(START | {"assets/a.json": written})
    assert references(built)["a"] == digest_bytes(b"one")


def test_an_asset_that_refers_to_it_no_more_is_left_alone() -> None:
    workspace = Workspace()
    workspace.change(START)
    workspace.change({"assets/a.json": account("a", "env:A")})
    assert references(workspace.change({"secrets/db.age": "two"})) == {}
    assert references(workspace.change({"secrets/db.age": "three"})) == {}


def page(source: dict[str, Any]) -> str:
    return msgspec.json.encode({"id": "p", "type": "test.Page", "payload": {"source": source}}).decode()


def test_content_in_a_file_is_named_by_digest_and_size_and_changes_with_the_file() -> None:
    def sources(built: Built) -> list[Any]:
        assert not built.diagnostics
        return [asset.document()["payload"]["source"] for asset in built.upserts]

    def sealed(content: bytes) -> dict[str, Any]:
        return {"file": "files/p", "digest": digest_bytes(content), "size": len(content)}

    workspace = Workspace()
    forged = {"digest": "forged", "file": "files/p", "size": 1}
    start = {"lehr.yaml": "partition: shop\n", "assets/p.json": page(forged), "files/p": "one"}
    assert sources(workspace.change(start)) == [sealed(b"one")]
    assert sources(workspace.change({"files/p": "three"})) == [sealed(b"three")]
    assert sources(workspace.change({"files/other": "x"})) == []
    assert sources(workspace.change({"files/p": None})) == [{"file": "files/p", "digest": None, "size": None}]
    assert sources(workspace.change({"files/p": "one"})) == [sealed(b"one")]


def test_a_text_file_is_part_of_the_asset_that_names_it() -> None:
    def sources(built: Built) -> list[Any]:
        assert not built.diagnostics
        return [asset.document()["payload"]["source"] for asset in built.upserts]

    def sealed(content: str, text: str | None) -> dict[str, Any]:
        digest, size = digest_bytes(content.encode()), len(content.encode())
        return {"file": "files/p", "digest": digest, "size": size, "text": text}

    workspace = Workspace()
    forged = {"digest": "forged", "file": "files/p", "size": 1, "text": "forged"}
    asset = page(forged).replace("test.Page", "test.Times")
    start = {"lehr.yaml": "partition: shop\n", "assets/p.json": asset, "files/p": "one"}
    assert sources(workspace.change(start)) == [sealed("one", "one")]
    assert sources(workspace.change({"files/p": "zwölf"})) == [sealed("zwölf", "zwölf")]
    assert sources(workspace.change({"files/other": "x"})) == []
    large = "x" * MOST_TEXT_BYTES
    assert sources(workspace.change({"files/p": large})) == [sealed(large, large)]
    assert sources(workspace.change({"files/p": large + "x"})) == [sealed(large + "x", None)]
    missing = {"file": "files/p", "digest": None, "size": None, "text": None}
    assert sources(workspace.change({"files/p": None})) == [missing]
