"""Whatever is changed in a state file behind the program's back is found and named; nothing else is."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from pathlib import Path

import msgspec
import pytest

from lehr.base.errors import StalledError
from lehr.model.asset import AssetId, Partition, make_asset
from lehr.model.attempt import Attempt, Publication
from lehr.model.control import AuditEntry, ControlKind
from lehr.model.damage import Damage
from lehr.model.decision import Reservation
from lehr.model.handle import Handle
from lehr.model.incarnation import Candidate, SourceRevision
from lehr.model.operation import DONE
from lehr.model.outputs import Outputs
from lehr.model.types import AnyReference, AssetType, Registry
from lehr.model.writes import (
    Admit,
    Adopt,
    Audit,
    KeepHandle,
    KeepOutputs,
    Prune,
    Pruned,
    Publish,
    RecordAttempt,
    RecordDecision,
    SetControl,
    TakeLease,
)
from lehr.sdk.store import Store
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import (
    NOW,
    PARTITION,
    RULE,
    THING,
    admitted,
    basis,
    commit,
    control,
    decision,
    entry,
    finish,
    operation,
    published,
)
from lehr.testing.conformance.store.subject import asset as plain


class Thing(msgspec.Struct, frozen=True):
    value: str = ""
    near: list[AnyReference] = []


class Rule(msgspec.Struct, frozen=True):
    value: str = ""


TYPES = Registry(
    [
        AssetType(THING, Thing, claims=lambda thing: [f"value:{thing.value}"] if thing.value else []),
        AssetType(RULE, Rule, governs=True),
    ]
)


def types(partition: Partition) -> Registry:
    return TYPES


def publish(store: Store, base: int, *things: tuple[str, str, list[str]], removals: str = "") -> None:
    upserts = tuple(
        make_asset(AssetId(id), THING, Thing(value, near), {})
        if id != "rule"
        else make_asset(AssetId(id), RULE, Rule(value), {})
        for id, value, near in things
    )
    candidate = Candidate(
        PARTITION,
        base,
        (SourceRevision("directory:/intent", str(base)),),
        plain("a").digest,
        upserts,
        tuple(AssetId(id) for id in removals),
    )
    mentions = {item.id: tuple(TYPES.mentions(item)) for item in upserts}
    claims = {item.id: TYPES.claims(item) for item in upserts}
    commit(store, Publish(candidate, mentions, (RULE,), NOW + base, claims))


def grow(store: Store) -> None:
    """Something of everything: six incarnations of which two are pruned, pushes, words, records."""
    publish(store, 0, ("a", "1", ["b"]), ("b", "1", []), ("rule", "1", []))
    publish(store, 1, ("a", "2", ["b"]), ("c", "1", ["a", "b"]))
    publish(store, 2, ("b", "3", []), ("a", "3", ["b"]))
    publish(store, 3, ("rule", "4", []))
    publish(store, 4, ("d", "5", []), ("b", "5", []), removals="c")
    publish(store, 5, ("a", "6", ["b", "d"]), ("b", "6", []), ("rule", "6", []))
    commit(store, TakeLease(PARTITION, "one", 1.0))
    held = Reservation("limit", 9)
    push = msgspec.structs.replace(operation("o1"), content=6, governing=6)
    request = msgspec.structs.replace(_admit(store, "o1"), operation=push, reservations=(held,))
    admitted(store, request)
    commit(store, finish("o1", DONE, ledger=entry("a", content=6, operation="o1")))
    admitted(store, msgspec.structs.replace(_admit(store, "o2"), reservations=(held,)))
    store.commit([Adopt(entry("b", content=4)), RecordDecision(decision("a")), RecordDecision(decision("b"))])
    pin = msgspec.structs.replace(control("p1", ControlKind.PIN), incarnation=2)
    store.commit([SetControl(pin), SetControl(control("c1"))])
    said = AuditEntry(at=NOW, actor="ana", command="pause", arguments={}, result="ok")
    tried = Attempt(partition=PARTITION, at=NOW, publication=Publication.PUBLISHED, sources=(), sequence=6)
    store.commit([Audit(PARTITION, said), RecordAttempt(tried)])
    gone = Pruned(rest=Prune(PARTITION, 1, NOW + 100))
    while gone.rest is not None:
        gone = gone.plus(commit(store, gone.rest))
    for number in range(3):
        commit(store, RecordDecision(decision("d", f"Turn{number}")))
    kept = KeepHandle(Handle(PARTITION, AssetId("a"), THING, "id-1", NOW))
    store.commit([kept, KeepOutputs(Outputs(PARTITION, AssetId("a"), THING, {"id": "id-1"}, NOW))])
    assert gone.incarnations == 2  # 3 and 5; 1 is read by the open push, 2 is pinned, 4 is applied


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state.sqlite"
    with contextlib.closing(SqliteStore(path)) as store:
        grow(store)
    return path


def _admit(store: Store, id: str) -> Admit:
    return Admit(operation(id), basis(store, "a"))


def found(path: Path) -> list[Damage]:
    with contextlib.closing(SqliteStore(path, read_only=True)) as store:
        return list(store.check(types))


def damage(path: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


def test_an_intact_state_is_clean(state: Path) -> None:
    assert found(state) == []


def test_a_state_with_nothing_in_it_is_clean(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "state").close()
    assert found(tmp_path / "state") == []


DAMAGES = {
    "UPDATE asset_version SET body = replace(body, '3', '4') WHERE id = 'b' AND sequence = 3": [
        "asset b of incarnation one@3 was changed"
    ],
    "UPDATE asset_version SET type = 'test.Other' WHERE id = 'd'": [
        "asset d of incarnation one@5 was changed",
        "asset d of one is not in the current state as",
    ],
    "UPDATE asset_version SET digest = substr(digest, 2) || 'x' WHERE id = 'd'": [
        "asset d of incarnation one@5 was changed",
        "incarnation one@6 is inconsistent with the digest",
        "asset d of one is not in the current",
        "the digest of bucket",
    ],
    "UPDATE asset_version SET origin = '{odd' WHERE id = 'd'": ["asset d of incarnation one@5 cannot be"],
    "DELETE FROM asset_version WHERE id = 'c' AND sequence = 2": [
        "the header of incarnation one@2 has wrong asset counts",
        "2 incarnations from one@2 to one@4 are inconsistent with the digest",
    ],
    "DELETE FROM asset_version WHERE id = 'c' AND digest IS NULL": [
        "the header of incarnation one@6 has wrong asset counts",
        "incarnation one@6 is inconsistent with the digest",
        "asset c of one is missing from the current state",
    ],
    "INSERT INTO asset_version (partition, id, sequence, type, checksum) VALUES ('one', 'z', 2, 'odd', '')": [
        "asset z of incarnation one@2 is a tombstone that is not empty"
    ],
    "INSERT INTO asset_version (partition, id, sequence, checksum) VALUES ('one', 'z', 9, '')": [
        "there are assets of incarnation one@9, which does not exist"
    ],
    "UPDATE incarnation SET header = replace(header, '\"changed\":1', '\"changed\":7') WHERE sequence = 2": [
        "the header of incarnation one@2 has wrong asset counts"
    ],
    'UPDATE incarnation SET header = replace(header, \'"digest":"\', \'"digest":"0\') WHERE sequence = 4': [
        "incarnation one@4 is inconsistent with the digest"
    ],
    'UPDATE incarnation SET header = replace(header, \'"governance":"\', \'"governance":"0\')'
    " WHERE sequence = 4": ["incarnation one@4 is governed by assets other than those stored"],
    "UPDATE incarnation SET header = replace(header, '\"sequence\":2', '\"sequence\":3')": [
        "the header of incarnation one@2 belongs to another row"
    ],
    "UPDATE incarnation SET header = '{odd' WHERE sequence = 3": [
        "the header of incarnation one@3 cannot be read"
    ],
    "DELETE FROM incarnation WHERE sequence = 2": ["incarnation one@2 is missing"],
    "UPDATE incarnation SET pruned = 1 WHERE sequence = 4": ["ledger b of one"],
    "UPDATE incarnation SET pruned = 1 WHERE sequence = 2": ["control p1 of one contradicts"],
    "UPDATE incarnation SET pruned = 0 WHERE sequence = 5": ["incarnation one@5 is inconsistent"],
    "UPDATE partition SET newest = 5": ["partition one has the wrong newest incarnation"],
    "UPDATE partition SET governance = 'odd'": ["partition one and its newest incarnation disagree"],
    "UPDATE partition SET controls = 1": ["the version of the controls of one is too low"],
    "UPDATE lease SET epoch = 0": ["operation o1 of one contradicts"],
    "DELETE FROM partition": ["partition one has no row of its own"],
    "UPDATE asset_current SET digest = 'odd' WHERE id = 'b'": ["asset b of one is not in the current"],
    "UPDATE asset_current SET bucket = bucket + 1 WHERE id = 'b'": ["asset b of one is not in the current"],
    "UPDATE asset_current SET version = 1 WHERE id = 'b'": ["asset b of one is not in the current"],
    "DELETE FROM asset_current WHERE id = 'b'": ["asset b of one is missing from the current state"],
    "INSERT INTO asset_current VALUES ('one', 'z', 'test.Thing', 'x', 1, 1, '')": [
        "asset z of one is in the current state"
    ],
    "UPDATE bucket_current SET digest = 'odd'": ["the digest of bucket"],
    "INSERT INTO bucket_current VALUES ('one', 1, 'x', '')": ["the digest of bucket 1 of one is wrong"],
    "DELETE FROM mention WHERE until IS NULL AND target = 'd'": ["what asset a of one refers"],
    "UPDATE mention SET path = '/odd' WHERE until IS NULL AND target = 'd'": ["what asset a of one refers"],
    "INSERT INTO mention (partition, source, path, target, checksum) VALUES ('one', 'z', '/', 'a', '')": [
        "there is a reference of asset z of one"
    ],
    "UPDATE mention SET until = 99 WHERE source = 'c'": ["a reference of asset c of one ends with"],
    "DELETE FROM claim_current WHERE asset = 'd'": ["the record of what asset d of one claims is wrong"],
    "INSERT INTO claim_current VALUES ('one', 'x', 'z', '')": ["there is a claim of asset z of one"],
    "UPDATE operation SET open = 0 WHERE id = 'o2'": [
        "operation o2 of one contradicts",
        "a share of limit is held by operation o2",
    ],
    "UPDATE operation SET asset = 'b' WHERE id = 'o1'": ["operation o1 of one contradicts"],
    "UPDATE operation SET body = replace(body, '\"content\":6', '\"content\":7')": ["operation o1 of one"],
    "UPDATE operation SET body = replace(body, '\"done\"', '\"odd\"')": ["operation o1 of one cannot"],
    "DELETE FROM operation WHERE id = 'o1'": ["ledger a of one contradicts"],
    "UPDATE reservation SET operation = 'o1'": ["a share of limit is held by operation o1"],
    "UPDATE ledger SET body = replace(body, '\"content\":4', '\"content\":9')": ["ledger b of one"],
    "UPDATE ledger SET body = 'odd' WHERE asset = 'b'": ["ledger b of one cannot be read"],
    "UPDATE handle SET asset = 'b'": ["handle b of one contradicts"],
    "UPDATE handle SET body = replace(body, '\"id-1\"', '\"\"')": ["handle a of one contradicts"],
    "UPDATE outputs SET asset = 'b'": ["outputs b of one contradicts"],
    "UPDATE outputs SET body = replace(body, '{\"id\":\"id-1\"}', '{}')": ["outputs a of one contradicts"],
    "UPDATE outputs SET body = 'odd'": ["outputs a of one cannot be read"],
    "UPDATE outputs SET partition = 'odd'": [
        "outputs a of odd belongs to another row",
        "partition odd has no row of its own",
    ],
    "UPDATE decision SET asset = 'b' WHERE number = 1": ["decision 1 of one contradicts"],
    "UPDATE decision SET body = replace(body, '\"governing\":1', '\"governing\":9')": ["decision 1 of one"],
    "UPDATE decision SET inputs = checksum WHERE number = 1": ["decision 1 on asset a is damaged"],
    "UPDATE standing SET key = 'odd' WHERE asset = 'a'": ["standing a of one contradicts"],
    "UPDATE standing SET condition = '{}' WHERE asset = 'b'": ["standing b of one cannot be read"],
    "UPDATE control SET expires_at = 5 WHERE id = 'c1'": ["control c1 of one contradicts"],
    "UPDATE attempt SET body = replace(body, '\"sequence\":6', '\"sequence\":7')": ["attempt one of one"],
    "UPDATE feed SET changes = 'odd'": ["feed 11 of one cannot be read"],
    "UPDATE feed SET number = number + 7 WHERE number = 12": [
        "the feed of one has a gap after entry 11",
        "entry 19 of the feed of one is damaged",
    ],
    "DELETE FROM feed WHERE number = 12": ["the feed of one has a gap after entry 11"],
    "UPDATE feed SET at = at + 1 WHERE number = 12": ["entry 12 of the feed of one is damaged"],
    "UPDATE feed SET changes = replace(changes, '\"d\"', '\"e\"') WHERE number = 12": [
        "entry 12 of the feed of one is damaged"
    ],
    "UPDATE feed SET partition = 'odd' WHERE number = 13": ["entry 13 of the feed of odd is damaged"],
    "UPDATE audit SET body = 'odd'": ["audit 1 of one cannot be read"],
    "UPDATE control SET partition = 'odd' WHERE id = 'p1'": [
        "control p1 of odd belongs to another row",
        "partition odd has no row of its own",
    ],
    "UPDATE decision SET partition = 'odd' WHERE number = 1": ["decision 1 of odd belongs to another row"],
    "UPDATE attempt SET partition = 'odd'": ["attempt odd of odd belongs to another row"],
    "UPDATE audit SET partition = 'odd'": ["partition odd has no row of its own"],
    "UPDATE mention SET partition = 'odd' WHERE until IS NOT NULL": ["partition odd has no row of its own"],
    "UPDATE asset_version SET body = NULL WHERE id = 'd'": ["asset d of incarnation one@5 was changed"],
    "UPDATE asset_version SET sequence = 4611686018427387904 WHERE id = 'd'": [
        "there are assets of incarnation one@4611686018427387904, which does not exist"
    ],
    "UPDATE asset_version SET sequence = -4611686018427387904 WHERE id = 'd'": [
        "there are assets of incarnation one@-4611686018427387904, which does not exist"
    ],
    "UPDATE incarnation SET sequence = 4611686018427387904 WHERE sequence = 6": [
        "4611686018427387898 incarnations from one@6 to one@4611686018427387903 are missing"
    ],
    "INSERT INTO imported_asset (name, id, type, digest, body, checksum)"
    " VALUES ('x@1', 'a', 't', 'd', 'b', '')": ["there are assets of x@1, which was not imported"],
    # What contradicts nothing else: only the checksums of the rows know.
    "UPDATE asset_version SET origin = NULL WHERE id = 'd'": ["asset d of incarnation one@5 is damaged"],
    "UPDATE incarnation SET header = replace(header, 'because', 'odd'), sequence = 7 WHERE sequence = 6": [
        "the header of incarnation one@7 is damaged"
    ],
    "UPDATE lease SET epoch = epoch + 1": ["the lease of partition one is damaged"],
    "UPDATE partition SET controls = controls + 1": ["partition one is damaged"],
    'UPDATE operation SET body = replace(body, \'"message":""\', \'"message":"odd"\')': [
        "operation o1 of asset a is damaged",
        "operation o2 of asset a is damaged",
    ],
    "UPDATE decision SET body = replace(body, 'AsIntended', 'AsEverybodyIntended') WHERE number = 1": [
        "decision 1 on asset a is damaged"
    ],
    "UPDATE standing SET since = since + 1 WHERE asset = 'a'": ["the time since which asset a of one has"],
    "UPDATE reservation SET at = at + 1": ["the share of limit that o2 holds is damaged"],
    "UPDATE ledger SET content = content - 1 WHERE asset = 'a'": ["the ledger of asset a of one is damaged"],
    "UPDATE outputs SET body = replace(body, 'id-1', 'id-2')": [
        "the record of the outputs of asset a of one is damaged"
    ],
    "UPDATE control SET lifted_at = 5 WHERE id = 'c1'": ["control c1 is damaged"],
    "UPDATE control SET body = replace(body, 'because', 'why not') WHERE id = 'c1'": [
        "control c1 is damaged"
    ],
    "UPDATE audit SET body = replace(body, 'ana', 'bob')": ["entry 1 of the audit trail is damaged"],
    "UPDATE attempt SET body = replace(body, '\"seconds\"', '\"secondz\"')": ["the last attempt of one"],
    "UPDATE mention SET until = until - 1 WHERE source = 'c'": ["the end of a reference of asset c of one"],
}


@pytest.mark.parametrize("statement", DAMAGES)
def test_each_kind_of_damage_is_found_and_named(state: Path, statement: str) -> None:
    as_bytes = re.sub(r"= (replace\([^)]*\))", r"= CAST(\1 AS BLOB)", statement)
    damage(state, as_bytes.replace("replace(body,", "replace(CAST(body AS TEXT),"))
    said = found(state)
    assert all(item.what and item.why and item.fix for item in said)
    for expected in DAMAGES[statement]:
        assert any(expected in item.what for item in said), [item.what for item in said]


def test_a_value_of_another_kind_is_found(state: Path) -> None:
    damage(state, "UPDATE asset_version SET id = CAST(id AS BLOB) WHERE id = 'd'")
    said = [item.what for item in found(state)]
    assert any("the check of the history of one could not be finished" in what for what in said)
    assert any("asset d of incarnation one@5 is damaged" in what for what in said)


def test_a_text_that_is_not_utf_8_is_found_and_the_rest_is_looked_at(state: Path) -> None:
    damage(state, "UPDATE asset_version SET body = CAST(x'ff' AS TEXT) WHERE id = 'd'")
    damage(state, "UPDATE audit SET body = 'odd'")
    said = [item.what for item in found(state)]
    assert any("asset d of incarnation one@5 is damaged" in what for what in said)
    assert any("audit 1 of one cannot be read" in what for what in said)


def test_all_damage_is_found_not_only_the_first(state: Path) -> None:
    damage(
        state,
        "UPDATE ledger SET body = 'odd'",
        "UPDATE audit SET body = 'odd'",
        "UPDATE partition SET newest = 5",
        "UPDATE asset_version SET body = 'odd' WHERE digest IS NOT NULL",
    )
    said = "\n".join(item.what for item in found(state))
    for expected in (
        "ledger a",
        "ledger b",
        "audit 1",
        "newest incarnation",
        "asset a of incarnation one@6",
        "asset d",
    ):
        assert expected in said


def test_a_page_that_was_overwritten_is_found(state: Path) -> None:
    content = bytearray(state.read_bytes())
    content[-4096:] = b"\xff" * 4096
    state.write_bytes(content)
    with contextlib.suppress(StalledError):  # where it cannot even be opened, that says enough
        assert found(state)


def test_types_that_nobody_knows_are_left_out(state: Path) -> None:
    damage(state, "DELETE FROM mention", "DELETE FROM claim_current")
    with contextlib.closing(SqliteStore(state, read_only=True)) as store:
        assert list(store.check(lambda partition: None)) == []


def test_it_reads_one_moment_and_disturbs_nobody(state: Path) -> None:
    with contextlib.closing(SqliteStore(state)) as writer, contextlib.closing(SqliteStore(state)) as store:
        counted: list[int] = []
        going = store.check(types, began=counted.append, advance=lambda rows: _publish_more(writer))
        assert list(going) == []
        assert counted[0] > 10
        newest = writer.intent.newest(PARTITION)
        assert newest is not None
        assert newest.sequence > 6
    assert found(state) == []


def _publish_more(writer: SqliteStore) -> None:
    newest = writer.intent.newest(PARTITION)
    assert newest is not None
    if newest.sequence < 9:
        published(writer, newest.sequence, make_asset(AssetId("e"), THING, Thing(), {}))
