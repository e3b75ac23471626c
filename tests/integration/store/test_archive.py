"""An incarnation as a file: whole and unchanged, or refused; read, and never in force."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from lehr.base.diagnostics import Position
from lehr.base.digest import digest_all
from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.incarnation import Incarnation
from lehr.model.merkle import incarnation_digest
from lehr.model.reason import Reason
from lehr.model.writes import Import, Refused
from lehr.store.archive import ArchiveError, open_archive, write_archive
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import NOW, PARTITION, THING, asset, commit, contents, published
from tests.codes import raises

TEXT = 'größe 名前 \U0001f9ca \u2028 \\ "'


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with contextlib.closing(SqliteStore(tmp_path / "state.sqlite")) as store:
        yield store


def incarnation(store: SqliteStore, count: int = 3) -> Incarnation:
    odd = make_asset(AssetId("odd/one@1:2"), THING, {"text": TEXT, "n": [0.1, None]}, {}, Position("a", 3, 7))
    return published(store, 0, *(asset(f"a{number:05}", TEXT) for number in range(count)), odd)


def exported(store: SqliteStore, path: Path, count: int = 3) -> Path:
    header = incarnation(store, count)
    write_archive(path, header, store.intent.assets(PARTITION, 1))
    return path


def state_of(store: SqliteStore) -> list[object]:
    intent = store.intent
    return [intent.partitions(), intent.imported(), list(intent.imported_assets("one@1"))]


@pytest.mark.parametrize("name", ["file", "file.gz"])
def test_what_is_imported_is_what_was_exported(store: SqliteStore, tmp_path: Path, name: str) -> None:
    path = exported(store, tmp_path / name)
    with contextlib.closing(SqliteStore(tmp_path / "other.sqlite")) as other:
        header = commit(other, Import(path, NOW + 5))
        assert header == store.intent.newest(PARTITION)
        [kept] = other.intent.imported()
        assert (kept.header, kept.at) == (header, NOW + 5)
        assert list(other.intent.imported_assets("one@1")) == contents(store, 1)
        assert list(other.check(lambda partition: None)) == []


def test_what_is_imported_is_never_in_force(store: SqliteStore, tmp_path: Path) -> None:
    path = exported(store, tmp_path / "file")
    before = contents(store, 1)
    published(store, 1, asset("new", "1"), removals=[item.id for item in before])
    commit(store, Import(path, NOW))
    assert contents(store, 2) == [asset("new", "1")]
    assert [head.id for head in store.intent.heads(PARTITION)] == ["new"]
    with contextlib.closing(SqliteStore(tmp_path / "other.sqlite")) as other:
        commit(other, Import(path, NOW))
        assert other.intent.partitions() == []
        assert other.intent.newest(PARTITION) is None


def test_equal_incarnations_make_equal_files(store: SqliteStore, tmp_path: Path) -> None:
    first = exported(store, tmp_path / "first.gz")
    header = store.intent.newest(PARTITION)
    assert header is not None
    write_archive(tmp_path / "second.gz", header, store.intent.assets(PARTITION, 1))
    assert first.read_bytes() == (tmp_path / "second.gz").read_bytes()


def test_a_large_one_is_compressed(store: SqliteStore, tmp_path: Path) -> None:
    path = exported(store, tmp_path / "file", count=1200)
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    with contextlib.closing(SqliteStore(tmp_path / "other.sqlite")) as other:
        assert commit(other, Import(path, NOW)).assets == 1201


def test_assets_go_through_one_at_a_time(store: SqliteStore, tmp_path: Path) -> None:
    header = incarnation(store)
    alive: list[bool] = []

    def assets() -> Iterator[Asset]:
        for item in contents(store, 1):
            alive.append((tmp_path / ".file.half").exists())
            yield item

    write_archive(tmp_path / "file", header, assets())
    assert alive == [True] * 4
    with open_archive(tmp_path / "file") as archive:
        going = archive.assets()
        assert next(going)[0].id == "a00000"


def test_every_byte_that_changes_is_noticed(store: SqliteStore, tmp_path: Path) -> None:
    header = published(store, 0, asset("a", TEXT))
    write_archive(path := tmp_path / "file", header, contents(store, 1))
    first, line, last = _lines(path)
    # What the header says besides, and where the asset was declared, is in no digest.
    for place in (*range(line.index(b',"origin"')), *range(len(line), len(line) + len(last))):
        changed = bytearray(line + last)
        changed[place] ^= 0x01
        path.write_bytes(first + changed)
        with raises("STO101", ArchiveError), open_archive(path) as archive:
            list(archive.assets())


@pytest.mark.parametrize("name", ["file", "file.gz"])
def test_a_file_that_is_not_whole_is_refused_and_imports_nothing(
    store: SqliteStore, tmp_path: Path, name: str
) -> None:
    path = exported(store, tmp_path / name)
    good = path.read_bytes()
    before = state_of(store)
    for length in range(0, len(good), 7):
        path.write_bytes(good[:length])
        with raises("STO101", ArchiveError) as caught:
            commit(store, Import(path, NOW))
        assert (str(path) in caught.value.what, bool(caught.value.why), bool(caught.value.fix)) == (True,) * 3
        assert state_of(store) == before
    path.write_bytes(good)
    assert commit(store, Import(path, NOW)).sequence == 1


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_what_is_left_out_put_in_or_turned_round_is_noticed(store: SqliteStore, tmp_path: Path) -> None:
    path = exported(store, tmp_path / "file")
    first, one, two, three, odd, last = _lines(path)
    for lines in (
        (first, one, three, odd, last),
        (first, one, one, two, three, odd, last),
        (first, two, one, three, odd, last),
        (first, one, two, three, odd, last, b"\n"),
        (first, one, two, three, odd),
        (one, two, three, odd, last),
        (first.replace(b'"assets":4', b'"assets":3'), one, two, three, odd, last),
    ):
        path.write_bytes(b"".join(lines))
        with raises("STO101", ArchiveError):
            commit(store, Import(path, NOW))
        assert store.intent.imported() == []


def test_what_is_no_incarnation_is_refused_with_advice(store: SqliteStore, tmp_path: Path) -> None:
    path = exported(store, tmp_path / "file")
    first, *rest = _lines(path)
    cases = {
        b"not json\n": "cannot be read",
        b'{"format": "other", "version": 1, "header": {}}\n': "it is a other",
        gzip.compress(b"nothing\n"): "cannot be read",
        b"".join([first.replace(b'"version":1', b'"version":9'), *rest]): "its format has version 9",
    }
    for content, why in cases.items():
        path.write_bytes(content)
        with raises("STO101", ArchiveError) as caught:
            commit(store, Import(path, NOW))
        assert why in caught.value.why
        assert caught.value.fix
    with raises("STO101", ArchiveError, match="No such file"):
        commit(store, Import(tmp_path / "missing", NOW))


@pytest.mark.parametrize(
    ("partition", "sequence", "why"),
    [
        ("../x", 1, "lower-case"),
        ("\x1b[2J", 1, "lower-case"),
        ("shop", 0, "count from 1"),
        ("shop", -1, "count"),
    ],
)
def test_a_header_names_what_can_be_an_incarnation(
    store: SqliteStore, tmp_path: Path, partition: str, sequence: int, why: str
) -> None:
    header = msgspec.structs.replace(incarnation(store), partition=Partition(partition), sequence=sequence)
    write_archive(tmp_path / "file", header, contents(store, 1))
    with raises("STO101", ArchiveError) as caught:
        commit(store, Import(tmp_path / "file", NOW))
    assert why in caught.value.why


@pytest.mark.parametrize(
    ("id", "body"),
    [
        ("../etc", b'{"addons":{},"payload":{}}'),
        ("\x1b[31mred", b'{"addons":{},"payload":{}}'),
        ("n\0ul", b'{"addons":{},"payload":{}}'),
        ("a", b"5"),
        ("a", b'{"payload":{}}'),
        ("a", b'{"addons":[],"payload":{}}'),
        ("a", b'{"addons":{},"payload":{"path":1,"path":2}}'),
        ("a", b'{"payload":{},"addons":{}}'),
    ],
)
def test_what_no_lehr_writes_is_refused_whatever_its_digests_say(
    store: SqliteStore, tmp_path: Path, id: str, body: bytes
) -> None:
    digest = digest_all((id, "lehr.File", body.decode()))
    forged = Asset(AssetId(id), "lehr.File", body, digest)
    header = msgspec.structs.replace(
        incarnation(store), assets=1, digest=incarnation_digest([(forged.id, forged.digest)])
    )
    write_archive(tmp_path / "file", header, [forged])
    with raises("STO101", ArchiveError):
        commit(store, Import(tmp_path / "file", NOW))
    assert store.intent.imported() == []


def test_fields_of_a_later_lehr_are_left_aside(store: SqliteStore, tmp_path: Path) -> None:
    path = exported(store, tmp_path / "file")
    lines = [line.replace(b"}\n", b',"later":[1]}\n') for line in _lines(path)]
    path.write_bytes(b"".join(lines))
    assert commit(store, Import(path, NOW)).sequence == 1


def test_another_of_the_same_name_is_refused_unless_it_is_to_be_replaced(
    store: SqliteStore, tmp_path: Path
) -> None:
    path = exported(store, tmp_path / "file")
    other = (asset("other", "1"),)
    header = store.intent.newest(PARTITION)
    assert header is not None
    digest = incarnation_digest((item.id, item.digest) for item in other)
    write_archive(tmp_path / "other", msgspec.structs.replace(header, digest=digest, assets=1), iter(other))
    commit(store, Import(path, NOW))
    assert commit(store, Import(path, NOW + 1)) == header  # the same once more
    refused = commit(store, Import(tmp_path / "other", NOW))
    assert isinstance(refused, Refused)
    assert refused.reason == Reason.EXISTS
    assert list(store.intent.imported_assets("one@1")) == contents(store, 1)
    commit(store, Import(tmp_path / "other", NOW, replace=True))
    assert list(store.intent.imported_assets("one@1")) == list(other)


def test_what_is_not_what_its_digest_says_is_not_exported(store: SqliteStore, tmp_path: Path) -> None:
    header = incarnation(store)
    (tmp_path / "file").write_text("what was there before")
    with raises("STO103", StalledError):
        write_archive(tmp_path / "file", header, contents(store, 1)[1:])
    assert (tmp_path / "file").read_text() == "what was there before"
    assert not list(tmp_path.glob("*half*"))


def test_where_nothing_can_be_written_that_is_said(store: SqliteStore, tmp_path: Path) -> None:
    header = incarnation(store)
    with raises("STO102", StalledError) as caught:
        write_archive(tmp_path / "missing" / "file", header, contents(store, 1))
    assert caught.value.fix
