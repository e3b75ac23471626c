"""Rules of the payload of `lehr.File`."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.base.digest import canonical
from lehr.model.workspace_file import WorkspaceFile
from lehr.plugins.file.payload import File, Symlink, path_problem


def load(**fields: Any) -> File:
    return msgspec.convert(fields, File)


@pytest.mark.parametrize("path", ["/etc/motd", "conf.d/app.conf", "a", "/x y/ü", "..a/b..", "~/a"])
def test_plain_paths_are_allowed(path: str) -> None:
    assert load(path=path, content="").path == path


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "length >= 1"),
        ("/", "empty part"),
        ("a/", "empty part"),
        ("a//b", "empty part"),
        ("//a", "empty part"),
        ("..", "`..`"),
        ("a/../b", "`..`"),
        ("./a", "`..`"),
        ("a\0b", "control character"),
        ("a\nb", "control character"),
        ("a\x7f", "control character"),
        ("x" * 256 + "/a", "255 bytes"),
        ("ü" * 122, "name of more than"),
        (".a.lehr-tmp", r"\.lehr-tmp or"),
        ("a.lehr-fenced", r"\.lehr-fenced,"),
        ("a/" * 2500 + "b", "length <= 4000"),
    ],
    ids=lambda text: repr(text)[:20],
)
def test_other_paths_are_refused(path: str, problem: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=problem):
        load(path=path, content="")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"content": "a", "content_base64": "YQ=="},
        {"content": "a", "content_secret": {"secret": "env:A"}, "mode": "0600"},
        {"content": "a", "source": "files/a"},
    ],
)
def test_content_is_given_exactly_once(fields: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError, match="exactly one"):
        load(path="a", **fields)


def test_a_source_is_written_as_a_path_and_kept_with_room_for_its_digest() -> None:
    file = load(path="a", source="files/a")
    assert file.workspace_file == WorkspaceFile("files/a")
    assert msgspec.json.decode(canonical(file), type=File) == file


@pytest.mark.parametrize("mode", ["0644", "0604", "0601", "4607"])
def test_a_secret_is_not_for_everybody(mode: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=f"{mode}.*0600"):
        load(path="a", content_secret={"secret": "env:A"}, mode=mode)
    assert load(path="a", content_secret={"secret": "env:A"}, mode="0640").data is None


@pytest.mark.parametrize("mode", ["", "9", "64", "06440", "u+x", "0o644", 644])
def test_modes_are_octal_text(mode: object) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"mode"):
        load(path="a", content="", mode=mode)


@pytest.mark.parametrize(("mode", "permissions"), [("644", 0o644), ("0600", 0o600), ("4755", 0o4755)])
def test_the_mode_is_read_as_octal(mode: str, permissions: int) -> None:
    assert load(path="a", content="", mode=mode).permissions == permissions


@pytest.mark.parametrize("owner", ["", "a b", "-root", "a:b", "x" * 65])
def test_owners_are_names_or_numbers(owner: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="owner"):
        load(path="a", content="", owner=owner)


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="contents"):
        load(path="a", contents="")


@given(st.binary(max_size=100))
def test_bytes_survive_the_canonical_form(data: bytes) -> None:
    file = File(path="a", content_base64=data)
    assert msgspec.json.decode(canonical(file), type=File).data == data


@given(st.text())
def test_a_path_is_refused_or_stays_inside(path: str) -> None:
    if path_problem(path) is None:
        assert ".." not in path.split("/")
        assert "\0" not in path


def test_the_payload_does_not_import_its_plugin() -> None:
    code = (
        "import sys, lehr.plugins.file.payload\n"
        "assert not {'asyncio', 'subprocess', 'lehr.plugins.file.plugin'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (["nginx", "-t"], r"does not mention \{file\}"),
        (["", "{file}"], "no program"),
        (["cat\0", "{file}"], "NUL"),
        ([], "length >= 1"),
        ("nginx -t -c {file}", "array"),
    ],
    ids=repr,
)
def test_a_validation_that_would_not_see_the_content_is_refused(command: object, problem: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=problem):
        load(path="a", content="", validate=command)
    assert load(path="a", content="", validate=["nginx", "-tc", "{file}"]).validate == (
        "nginx",
        "-tc",
        "{file}",
    )


@pytest.mark.parametrize(
    ("path", "target", "problem"),
    [
        ("a/../b", "c", "`..`"),
        ("a", "", "length >= 1"),
        ("a", "c\nd", "`target` has a control"),
        ("a/", "c", "empty"),
    ],
)
def test_links_that_cannot_be_made_are_refused(path: str, target: str, problem: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=problem):
        msgspec.convert({"path": path, "target": target}, Symlink)
