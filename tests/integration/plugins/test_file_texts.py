"""The texts that `lehr.File` shows in plans, and those that it hides."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pygit2
import pytest

from lehr.base.blocking import Inline
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Goal
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.model.workspace_file import WorkspaceFile
from lehr.plugins.file.payload import FILE, TYPES, File
from lehr.plugins.file.plugin import FilePlugin
from lehr.sdk.plugin import MOST_TEXT, TextChange
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedReader, FixedSecrets, target_of

REGISTRY = Registry(TYPES)
SOURCE = b"from a file\n"
DIGEST = str(pygit2.hash(SOURCE))


def asset_of(file: File) -> Asset:
    return make_asset(AssetId("a"), FILE, file, {})


def texts(base: Path, file: File, goal: Goal = Goal.PRESENT) -> Sequence[TextChange]:
    asset = asset_of(file)
    secrets = FixedSecrets({"env:A": "secret"})
    kept = {DIGEST: SOURCE}
    plugin = FilePlugin(
        base, Inline(), fsync=False, secrets=secrets, contents=lambda path, digest: kept.get(digest)
    )
    return asyncio.run(plugin.texts(target_of(asset, goal), FixedReader([asset], REGISTRY)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_texts_that_all_may_read_keep_the_contract(rule: Rule, tmp_path: Path) -> None:
    if "text" not in rule.__name__:
        return
    subject = Subject(
        make=lambda: FilePlugin(tmp_path, Inline(), fsync=False),
        registry=REGISTRY,
        asset=asset_of(File(path="a", content="one\n")),
        changed=asset_of(File(path="a", content="two")),
        disturb=lambda: None,
        observe=lambda: {item.name: item.read_bytes() for item in tmp_path.iterdir()},
    )
    asyncio.run(rule(subject))


def test_content_is_shown_as_it_is_and_as_it_will_be(tmp_path: Path) -> None:
    file = File(path="a", content="öne\r\n")
    assert texts(tmp_path, file) == (TextChange("content", None, "öne\r\n"),)
    (tmp_path / "a").write_text("two")
    (tmp_path / "a").chmod(0o644)
    assert texts(tmp_path, file) == (TextChange("content", "two", "öne\r\n"),)
    assert texts(tmp_path, file, Goal.ABSENT) == ()
    (tmp_path / "a").write_bytes("öne\r\n".encode())
    assert texts(tmp_path, file) == ()


def test_a_file_of_the_workspace_is_shown_if_it_was_kept(tmp_path: Path) -> None:
    kept = File(path="a", source=WorkspaceFile("f", DIGEST, len(SOURCE)))
    assert texts(tmp_path, kept) == (TextChange("content", None, SOURCE.decode()),)
    lost = File(path="a", source=WorkspaceFile("f", str(pygit2.hash(b"")), 0))
    [found] = texts(tmp_path, lost)
    assert "not available" in found.hidden


@pytest.mark.parametrize("mode", ["0600", "0640", "0750"])
@pytest.mark.parametrize("found", [None, "0644"])
def test_what_others_may_not_read_is_hidden(mode: str, found: str | None, tmp_path: Path) -> None:
    if found is not None:
        (tmp_path / "a").write_text("two")
        (tmp_path / "a").chmod(int(found, 8))
    [shown] = texts(tmp_path, File(path="a", content="one", mode=mode))
    assert shown.observed is shown.intended is None
    assert mode in shown.hidden


def test_what_others_could_not_read_until_now_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("two")
    (tmp_path / "a").chmod(0o600)
    [shown] = texts(tmp_path, File(path="a", content="one"))
    assert shown.observed is shown.intended is None
    assert "0600" in shown.hidden


def test_a_secret_is_not_even_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("two")
    assert texts(tmp_path, File(path="a", content_secret=Secret("env:B"), mode="0600")) == ()


@pytest.mark.parametrize("content", [b"\xff", b"a\0b", b"x" * (MOST_TEXT + 1)])
def test_what_is_no_text_or_too_long_is_hidden_whichever_side_it_is_on(
    content: bytes, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(content)
    (tmp_path / "a").chmod(0o644)
    [shown] = texts(tmp_path, File(path="a", content="one"))
    (tmp_path / "a").write_bytes(b"one")
    [other] = texts(tmp_path, File(path="a", content_base64=content))
    assert shown == other
    assert shown.observed is shown.intended is None
    assert shown.hidden


def test_what_is_not_a_file_has_no_text(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").write_text("of another file")
    assert texts(tmp_path, File(path="a", content="one")) == ()
