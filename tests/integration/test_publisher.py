"""Publishing from real directories through the real worker into a real store."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from lehr import wiring
from lehr.base.blocking import Blocking, Inline, Threads
from lehr.base.chance import Chance
from lehr.base.clock import Clock, SystemClock
from lehr.base.diagnostics import Diagnostic, Severity, errors
from lehr.base.digest import digest
from lehr.base.errors import StalledError, TransientError
from lehr.enforce.committer import Committer
from lehr.model.addons import TURNDOWN
from lehr.model.asset import AssetId, AssetKey, Partition, make_asset
from lehr.model.attempt import Attempt, Publication
from lehr.model.diff import Goal
from lehr.model.incarnation import AssetChange, SourceRevision
from lehr.model.merkle import incarnation_digest
from lehr.model.operation import LedgerEntry
from lehr.model.types import Registry
from lehr.model.writes import Adopt, Publish, RecordAttempt
from lehr.plugins.file.payload import File
from lehr.publish.claims import Compared, compare
from lehr.publish.predecessor import StoredPredecessor
from lehr.publish.publisher import Publisher
from lehr.sdk.asked_validator import AskedValidator
from lehr.sdk.claims import Claims
from lehr.sdk.generation import Generated, Generation, OvertakenError
from lehr.sdk.protected import Protected
from lehr.sdk.runtime import Runtime
from lehr.sdk.source import RefusedRevisionError, Snapshot, SourcesError
from lehr.sdk.validator import DatabaseRule, LookUp, Proposal, Validator
from lehr.sources import open_source
from lehr.store.claims import HostClaims
from lehr.store.sql.tables import INCARNATION
from lehr.store.sqlite import SqliteStore
from lehr.store.sqlite.claims import ClaimFile
from tests.snapshots import MemorySnapshot

PARTITION = Partition("test")


class Place:
    """A workspace, its store, and a publisher between them.

    Attributes:
        untold: True while what came of a pass cannot be written.
        unpublished: True while no incarnation can be written.
        attempts: how many passes came to something that was written.
    """

    def __init__(self, folder: Path, clean: Callable[[], Generation] = wiring.generation) -> None:
        self.workspace = folder / "workspace"
        self.state = folder / "state"
        self.state.mkdir(parents=True, exist_ok=True)
        self.write("lehr.yaml", "partition: test\n")
        self.store = SqliteStore(self.state / "state.sqlite")
        self._committer = Committer(self.store, Inline(), SystemClock())
        self.generation = wiring.generation()
        self.untold = False
        self.unpublished = False
        self.attempts = 0
        self._clean = clean
        self.publisher = self.publishing(self.generation)

    def publishing(
        self,
        generation: Generation,
        registry: Registry | None = None,
        blocking: Blocking | None = None,
        look_up: LookUp | None = None,
        claims: Claims | None = None,
        clock: Clock | None = None,
        validators: Sequence[Validator] = (),
        asked_validators: Sequence[AskedValidator] = (),
    ) -> Publisher:
        """A publisher over this generation."""
        return Publisher(
            Runtime(
                PARTITION,
                self.store,
                registry or wiring.registry(),
                clock or SystemClock(),
                Chance(),
                Inline(),
            ),
            open_source(str(self.workspace), self.state, clock=SystemClock(), kind="directory"),
            generation,
            self._clean,
            self._ask,
            blocking or Inline(),
            look_up,
            claims,
            validators,
            asked_validators,
        )

    async def _ask(self, write: object) -> object:
        if self.untold and isinstance(write, RecordAttempt):
            raise TransientError("the disk is full")
        if self.unpublished and isinstance(write, Publish):
            raise TransientError("the disk is full")
        self.attempts += isinstance(write, RecordAttempt)
        [answer] = self.store.commit([write])  # type: ignore[list-item]
        return answer

    def write(self, path: str, text: str) -> None:
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def files(self, *names: str, addons: str = "{}") -> None:
        assets = "".join(
            f"- id: {name}\n  type: lehr.File\n  payload: {{path: out/{name}, content: x}}\n"
            f"  addons: {addons}\n"
            for name in names
        )
        self.write("assets/files.yaml", assets)

    async def close(self) -> None:
        await self.generation.close()
        self.store.close()


def play(folder: Path, scenario: Callable[[Place], Awaitable[None]], **fields: object) -> None:
    async def main() -> None:
        place = Place(folder, **fields)  # type: ignore[arg-type]
        try:
            await scenario(place)
        finally:
            await place.close()

    asyncio.run(main())


def codes(attempt: Attempt) -> set[str]:
    return {diagnostic.code for diagnostic in attempt.diagnostics}


def test_what_is_not_published_has_an_error_that_says_why(tmp_path: Path) -> None:
    class Vague:
        name = "vague"

        def newest(self) -> Snapshot:
            hint = Diagnostic(code="PUB001", what="something may be wrong", severity=Severity.WARNING)
            raise SourcesError([hint], MemorySnapshot({}))

    async def scenario(place: Place) -> None:
        place.publisher._source = Vague()  # type: ignore[assignment]
        attempt = await place.publisher.refresh()
        assert attempt.publication is Publication.UNREADABLE
        assert [item.code for item in errors(attempt.diagnostics)] == ["PUB011"]

    play(tmp_path, scenario)


def test_a_revision_becomes_an_incarnation_with_a_digest_of_its_assets(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a", "b")
        attempt = await place.publisher.refresh()
        assert (attempt.publication, attempt.sequence, set(attempt.changed)) == (
            Publication.PUBLISHED,
            1,
            {"a", "b"},
        )
        newest = place.store.intent.newest(PARTITION)
        assert newest is not None
        heads = place.store.intent.heads(PARTITION)
        assert newest.digest == incarnation_digest((head.id, head.digest) for head in heads)
        assert newest.sources == attempt.sources

    play(tmp_path, scenario)


def test_others_go_on_while_a_candidate_is_judged(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        loop, others_went_on = asyncio.get_running_loop(), threading.Event()

        def claims(payload: object) -> list[str]:
            loop.call_soon_threadsafe(others_went_on.set)
            assert others_went_on.wait(timeout=10)
            return []

        registry = wiring.registry()
        registry.types["lehr.File"] = replace(registry.types["lehr.File"], claims=claims)
        place.files("a")
        generation, threads = wiring.generation(), Threads("publish", 1)
        try:
            attempt = await place.publishing(generation, registry, threads).refresh()
            assert attempt.publication is Publication.PUBLISHED
        finally:
            threads.close()
            await generation.close()

    play(tmp_path, scenario)


def test_a_register_of_claims_that_cannot_be_used_stops_only_what_claims(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        damaged = tmp_path / "claims.sqlite"
        damaged.write_text("not a database" * 100)
        register = ClaimFile(damaged, lambda _: True)
        claims = HostClaims(register, "s", place.state, tmp_path, Inline(), Inline())
        place.publisher = place.publishing(place.generation, claims=claims)
        place.write("assets/a.yaml", "id: a\ntype: lehr.Command\npayload: {check: 'true', apply: 'true'}\n")
        attempt = await place.publisher.refresh()
        assert attempt.publication is Publication.PUBLISHED, attempt.diagnostics
        place.files("b")
        attempt = await place.publisher.refresh()
        assert (attempt.publication, codes(attempt)) == (Publication.UNREADABLE, {"PUB008"})

    play(tmp_path, scenario)


def test_a_revision_that_declares_nothing_new_is_not_an_incarnation(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a")
        await place.publisher.refresh()
        assert (await place.publisher.refresh()).publication is Publication.UNCHANGED
        place.write("notes.txt", "hello")
        attempt = await place.publisher.refresh()
        assert (attempt.publication, attempt.sequence) == (Publication.UNCHANGED, 1)
        assert "generate" in attempt.seconds
        assert "generate" not in (await place.publisher.refresh()).seconds

    play(tmp_path, scenario)


def test_a_revision_is_gone_back_to_although_nobody_was_told_of_what_came_in_between(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a")
        await place.publisher.refresh()
        before = place.store.intent.newest(PARTITION)
        assert before is not None
        place.write(
            "assets/files.yaml", (place.workspace / "assets/files.yaml").read_text().replace("x", "y")
        )
        place.untold = True
        with pytest.raises(TransientError):
            await place.publisher.refresh()
        place.untold = False
        place.files("a")
        attempt = await place.publisher.refresh()
        newest = place.store.intent.newest(PARTITION)
        assert newest is not None
        assert (newest.digest, newest.sequence) == (before.digest, 3)
        assert (attempt.publication, attempt.sequence) == (Publication.PUBLISHED, 3)

    play(tmp_path, scenario)


def test_a_refused_revision_leaves_the_last_good_one_in_force(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a")
        await place.publisher.refresh()
        place.write("assets/files.yaml", "- id: a\n  type: lehr.File\n  payload: {path: [}\n")
        attempt = await place.publisher.refresh()
        assert (attempt.publication, attempt.sequence) == (Publication.REFUSED, 1)
        assert attempt.diagnostics[0].at is not None
        assert attempt.diagnostics[0].at.line == 3
        again = await place.publisher.refresh()
        assert again.diagnostics == attempt.diagnostics
        place.files("a", "b")
        assert (await place.publisher.refresh()).changed == (AssetId("b"),)

    play(tmp_path, scenario)


def test_a_dangling_reference_is_pointed_at_where_it_stands(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a", "b", addons="{lehr.DependsOn: {assets: [nobody]}}")
        found = (await place.publisher.refresh()).diagnostics
        assert [(item.code, str(item.at)) for item in found] == [
            ("VAL001", "assets/files.yaml:4:38"),
            ("VAL001", "assets/files.yaml:8:38"),
        ]

    play(tmp_path, scenario)


def test_what_was_touched_by_a_refused_revision_is_compared_with_the_next(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a", "b")
        await place.publisher.refresh()
        place.write("assets/more.yaml", "- {id: c, type: lehr.File, payload: {path: out/c, content: x}}\n")
        place.write("assets/bad.yaml", "- {id: d, type: lehr.File, payload: {path: out/d, no: x}}\n")
        assert (await place.publisher.refresh()).publication is Publication.REFUSED
        (place.workspace / "assets/bad.yaml").unlink()
        assert (await place.publisher.refresh()).changed == (AssetId("c"),)

    play(tmp_path, scenario)


def test_what_another_process_has_published_is_compared_although_it_was_not_touched(tmp_path: Path) -> None:
    """Of processes that take over from each other, each knows only what changed since its own last pass."""

    async def scenario(place: Place) -> None:
        generation = wiring.generation()
        other = place.publishing(generation)
        place.files("a", "b")
        assert (await place.publisher.refresh()).publication is Publication.PUBLISHED
        before = [head.digest for head in place.store.intent.heads(PARTITION)]
        place.files("a", "b", addons="{lehr.Owner: {team: web}}")
        assert (await other.refresh()).changed == ("a", "b")
        place.files("a", "b")
        place.write("assets/more.yaml", "")
        assert (await place.publisher.refresh()).changed == ("a", "b")
        assert [head.digest for head in place.store.intent.heads(PARTITION)] == before
        await generation.close()

    play(tmp_path, scenario)


def test_absence_is_refused_and_turndown_is_accepted(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a", "b", "c")
        await place.publisher.refresh()
        place.files("a", "b")
        assert (await place.publisher.refresh()).publication is Publication.REFUSED
        place.files("a", "b", "c", addons="{lehr.Turndown: {reason: old}}")
        attempt = await place.publisher.refresh()
        assert attempt.publication is Publication.PUBLISHED, attempt.diagnostics
        place.files("a")
        attempt = await place.publisher.refresh()
        assert attempt.publication is Publication.PUBLISHED, attempt.diagnostics
        assert place.store.intent.asset(AssetKey(PARTITION, AssetId("b")), attempt.sequence) is None

    play(tmp_path, scenario)


class Slow:
    """A generation that is not done before somebody has edited the workspace, and it is overtaken.

    Args:
        edit: edits it.
    """

    def __init__(self, inner: Generation, edit: Callable[[], None]) -> None:
        self.calls = 0
        self._inner = inner
        self._edit = edit
        self._newer = asyncio.Event()

    async def generate(self, snapshot: Snapshot) -> Generated:
        self.calls += 1
        if not self._newer.is_set():
            self._edit()
            await self._newer.wait()
            raise OvertakenError
        return await self._inner.generate(snapshot)

    def overtake(self) -> None:
        self._newer.set()

    async def close(self) -> None:
        await self._inner.close()


def test_a_newer_revision_overtakes_the_one_that_is_being_made(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a")
        slow = Slow(wiring.generation(), lambda: place.files("a", "b"))
        attempt = await place.publishing(slow).refresh()
        assert (attempt.publication, attempt.sequence) == (Publication.PUBLISHED, 1)
        assert attempt.changed == (AssetId("a"), AssetId("b"))
        assert slow.calls == 2
        await slow.close()

    play(tmp_path, scenario)


class Restless(Slow):
    """Overtaken as often as it may be; then it gives in."""

    async def generate(self, snapshot: Snapshot) -> Generated:
        self.calls += 1
        if self.calls <= 3:
            raise OvertakenError
        return await self._inner.generate(snapshot)


def test_a_revision_that_is_never_the_last_is_published_all_the_same(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a")
        restless = Restless(wiring.generation(), lambda: None)
        attempt = await place.publishing(restless).refresh()
        assert (attempt.publication, restless.calls) == (Publication.PUBLISHED, 4)
        await restless.close()

    play(tmp_path, scenario)


class Late(SystemClock):
    """A clock that can be ahead.

    Attributes:
        ahead: by so many seconds.
    """

    ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


class Lengthy(Slow):
    """A generation that takes an hour."""

    async def generate(self, snapshot: Snapshot) -> Generated:
        self._edit()
        return await self._inner.generate(snapshot)


def test_a_turndown_stands_from_its_publication_on(tmp_path: Path) -> None:
    """However long it took to generate and to build it once more."""
    clock = Late()

    def takes_an_hour() -> None:
        clock.ahead += 3600

    def clean() -> Generation:
        return Lengthy(wiring.generation(), takes_an_hour)

    async def scenario(place: Place) -> None:
        place.files("a")
        lengthy = Lengthy(place.generation, takes_an_hour)
        publisher = place.publishing(lengthy, clock=clock)
        await publisher.refresh()
        place.files("a", addons="{lehr.Turndown: {reason: old}}")
        began = clock.now()
        assert (await publisher.refresh()).publication is Publication.PUBLISHED
        since = place.store.intent.addon_since(AssetKey(PARTITION, AssetId("a")), TURNDOWN)
        assert since is not None
        assert began + 7200 <= since <= clock.now()

    play(tmp_path, scenario, clean=clean)


class Doubtful:
    """A generation that makes something else when it remembers nothing."""

    def __init__(self) -> None:
        self._inner = wiring.generation()

    async def generate(self, snapshot: object) -> object:
        generated = await self._inner.generate(snapshot)  # type: ignore[arg-type]
        return msgspec.structs.replace(generated, assets={})

    async def close(self) -> None:
        await self._inner.close()


def test_a_turndown_that_a_clean_build_does_not_confirm_is_refused(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a")
        assert (await place.publisher.refresh()).publication is Publication.PUBLISHED
        place.files("a", addons="{lehr.Turndown: {reason: old}}")
        attempt = await place.publisher.refresh()
        assert attempt.publication is Publication.REFUSED
        assert codes(attempt) == {"PUB005"}

    play(tmp_path, scenario, clean=Doubtful)


def test_a_validator_of_a_plugin_can_prevent_publication(tmp_path: Path) -> None:
    def refuse(proposal: Proposal) -> Iterator[Diagnostic]:
        for change in proposal.changes():
            assert change.after is not None
            assert proposal.asset(change.id) == change.after
            at = proposal.place(change.after, "/payload/content")
            yield Diagnostic(code="X001", what="wrong", subject=change.id, at=at)

    async def scenario(place: Place) -> None:
        place.files("a")
        attempt = await place.publishing(place.generation).refresh()
        assert attempt.publication is Publication.PUBLISHED
        place.files("a", "b")
        attempt = await place.publishing(place.generation, validators=[refuse]).refresh()
        assert (attempt.publication, codes(attempt)) == (Publication.REFUSED, {"X001"})
        [found] = attempt.diagnostics
        assert found.subject == "b"
        assert found.at is not None

    play(tmp_path, scenario)


def test_a_value_that_has_been_entered_into_the_database_since_is_published(tmp_path: Path) -> None:
    known: set[str] = set()

    async def look_up(rule: DatabaseRule) -> frozenset[str]:
        return frozenset(known)

    async def scenario(place: Place) -> None:
        rule = 'name: c, connection: "sqlite:i.sqlite", query: SELECT name FROM c, field: /content'
        place.write("lehr.yaml", f"partition: test\ndatabases:\n- {{{rule}, type: lehr.File}}\n")
        place.files("a")
        publisher = place.publishing(place.generation, look_up=look_up)
        attempt = await publisher.refresh()
        assert (attempt.publication, codes(attempt)) == (Publication.REFUSED, {"VAL050"})
        again = await publisher.refresh()
        assert (again.publication, again.diagnostics) == (Publication.REFUSED, attempt.diagnostics)
        assert place.attempts == 1, "nothing has changed that would be worth a note"
        known.add("x")
        attempt = await publisher.refresh()
        assert (attempt.publication, attempt.changed) == (Publication.PUBLISHED, (AssetId("a"),))

    play(tmp_path, scenario)


def test_a_path_that_does_not_lead_into_a_protected_folder_any_more_is_published(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        out = place.workspace / "out"
        out.symlink_to(place.state)
        place.files("a")
        protected = Protected({place.state: "the state folder"})
        register = ClaimFile(tmp_path / "claims.sqlite", lambda state: True)
        claims = HostClaims(
            register, "store", place.state, place.workspace, Inline(), Inline(), protected=protected
        )
        publisher = place.publishing(place.generation, claims=claims)
        attempt = await publisher.refresh()
        assert (attempt.publication, codes(attempt)) == (Publication.REFUSED, {"VAL032"})
        await publisher.refresh()
        assert place.attempts == 1
        out.unlink()
        assert (await publisher.refresh()).publication is Publication.PUBLISHED
        register.close()

    play(tmp_path, scenario)


class Moving:
    """An asset that moves from one path to another, and another partition that wants each of them."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place = place
        self._folder = folder
        self.register = ClaimFile(folder / "claims.sqlite", lambda state: True)
        self.claims = self._claims("one")
        self.publisher = self.started()

    def started(self) -> Publisher:
        """A publisher of a process that has just started."""
        return self.place.publishing(self.place.generation, claims=self.claims)

    def _claims(self, store: str) -> HostClaims:
        place = self.place
        return HostClaims(self.register, store, self._folder / store, place.workspace, Inline(), Inline())

    def declare(self, **paths: str) -> None:
        """Files by name, with their paths."""
        lines = [
            f"- {{id: {id}, type: lehr.File, payload: {{path: {path}, content: x}}}}\n"
            for id, path in paths.items()
        ]
        self.place.write("assets/files.yaml", "".join(lines))

    async def published(self) -> None:
        attempt = await self.publisher.refresh()
        assert attempt.publication is Publication.PUBLISHED, attempt.diagnostics

    def applied(self, sequence: int, asset: str = "a") -> None:
        """Production has what this incarnation says."""
        entry = LedgerEntry(
            PARTITION, AssetId(asset), digest("x"), sequence, Goal.PRESENT, None, float(sequence)
        )
        self.place.store.commit([Adopt(entry)])

    async def free(self) -> set[str]:
        """The paths of `p` and `q` that another partition could take."""
        asked = {AssetId(path): [f"file:{path}"] for path in ("p", "q")}
        held = await self._claims("other").conflicts(Partition("other"), asked)
        return {str(id) for id in asked} - {str(conflict.asset) for conflict in held}


def moving(folder: Path, scenario: Callable[[Moving], Awaitable[None]]) -> None:
    async def main(place: Place) -> None:
        moving = Moving(place, folder)
        moving.declare(a="p")
        await moving.published()
        moving.applied(1)
        await scenario(moving)
        moving.register.close()

    play(folder, main)


def test_an_asset_that_moves_holds_both_paths_until_it_was_applied(tmp_path: Path) -> None:
    async def scenario(moving: Moving) -> None:
        moving.declare(a="q")
        moving.place.unpublished = True
        with pytest.raises(TransientError):
            await moving.publisher.refresh()
        assert await moving.free() == set(), "the path that is in force, and the one to come"
        moving.place.unpublished = False
        await moving.published()
        await moving.publisher.refresh()
        assert await moving.free() == set(), "the former one is in production"
        moving.applied(2)
        await moving.publisher.refresh()
        assert await moving.free() == {"p"}

    moving(tmp_path, scenario)


def test_an_asset_that_moves_holds_what_a_pin_holds_in_production(tmp_path: Path) -> None:
    async def scenario(moving: Moving) -> None:
        moving.declare(a="q")
        await moving.published()
        moving.applied(2)
        moving.applied(1)  # it was pinned
        await moving.publisher.refresh()
        assert await moving.free() == set()
        moving.applied(2)
        await moving.publisher.refresh()
        assert await moving.free() == {"p"}

    moving(tmp_path, scenario)


def test_who_starts_releases_what_a_former_process_had_not(tmp_path: Path) -> None:
    async def scenario(moving: Moving) -> None:
        moving.declare(a="q")
        await moving.published()
        moving.applied(2)
        assert await moving.free() == set()
        await moving.started().refresh()
        assert await moving.free() == {"p"}

    moving(tmp_path, scenario)


def test_a_path_that_another_asset_has_left_may_be_taken_before_it_is_released(tmp_path: Path) -> None:
    async def scenario(moving: Moving) -> None:
        moving.declare(a="q")
        await moving.published()
        moving.declare(a="q", b="p")
        b = make_asset(AssetId("b"), "lehr.File", File(path="p", content="x"), {})
        a = moving.place.store.intent.asset(AssetKey(PARTITION, AssetId("a")), 2)
        assert a is not None
        added = [AssetChange(b.id, None, b)]
        told = await compare([moving.claims], PARTITION, added, {a.id: a, b.id: b}, wiring.registry())
        assert told == Compared(), "so say `lehr plan` and `lehr validate`"
        await moving.published()
        moving.applied(2)
        await moving.publisher.refresh()
        assert await moving.free() == set(), "it is of the other asset now"
        (moving.place.workspace / "link").symlink_to(".")
        moving.declare(a="q", b="p", c="link/q")
        attempt = await moving.publisher.refresh()
        assert codes(attempt) == {"VAL031"}, "what an asset holds by another name still counts"

    moving(tmp_path, scenario)


def test_a_source_that_disappears_is_said_and_nothing_is_touched(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a")
        await place.publisher.refresh()
        place.workspace.rename(tmp_path / "gone")
        attempt = await place.publisher.refresh()
        assert (attempt.publication, attempt.sequence) == (Publication.UNREADABLE, 1)
        assert codes(attempt) == {"PUB001"}
        (tmp_path / "gone").rename(place.workspace)
        assert (await place.publisher.refresh()).publication is Publication.UNCHANGED

    play(tmp_path, scenario)


def test_another_partition_is_refused(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a")
        await place.publisher.refresh()
        place.write("lehr.yaml", "partition: other\n")
        assert codes(await place.publisher.refresh()) == {"PUB003"}

    play(tmp_path, scenario)


def test_an_incarnation_says_how_many_assets_of_each_type_it_has(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.write("lehr.yaml", "partition: test\ngrowth: {floor: 1}\n")
        place.files("a", "b")
        await place.publisher.refresh()
        place.files("a", "b", "c")
        await place.publisher.refresh()
        newest = place.store.intent.newest(PARTITION)
        assert newest is not None
        assert newest.types == {"lehr.File": 3}
        attempt = await _after(place, "a", "b", "c", "d", "e")
        assert codes(attempt) == {"VAL022"}

    play(tmp_path, scenario)


def test_the_types_of_an_incarnation_from_before_they_were_counted_are_counted(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a", "b")
        await place.publisher.refresh()
        newest = place.store.intent.newest(PARTITION)
        assert newest is not None
        header = msgspec.json.encode(replace(newest, types={}))
        with contextlib.closing(sqlite3.connect(place.state / "state.sqlite")) as db, db:
            sealed = INCARNATION.sealed(PARTITION, newest.sequence, header)
            db.execute("UPDATE incarnation SET header = ?, checksum = ?", sealed[2:])
        predecessor = StoredPredecessor(place.store, wiring.registry(), PARTITION)
        assert predecessor.sizes() == {"lehr.File": 2}
        await _after(place, "a", "b", "c")
        newest = place.store.intent.newest(PARTITION)
        assert newest is not None
        assert newest.types == {"lehr.File": 3}

    play(tmp_path, scenario)


async def _after(place: Place, *names: str) -> Attempt:
    """What comes of declaring these files."""
    place.files(*names)
    return await place.publisher.refresh()


def test_a_revision_that_no_source_may_hold_is_refused_once(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a")
        assert (await place.publisher.refresh()).publication is Publication.PUBLISHED
        revision = SourceRevision("git:intent", "1" * 40)
        reads = 0

        def newest() -> Snapshot:
            nonlocal reads
            reads += 1
            raise RefusedRevisionError(revision, StalledError("the commit holds too much", fix="move it"))

        place.publisher._source.newest = newest  # type: ignore[method-assign]
        first, second = [await place.publisher.refresh() for _ in range(2)]
        assert first.publication is Publication.REFUSED
        assert codes(first) == {"PUB007"}
        assert first.sources[0] == revision
        assert first.sequence == 1
        assert replace(second, at=first.at, seconds=first.seconds) == first
        kept = place.store.records.attempt(PARTITION)
        assert kept is not None
        assert kept.at == first.at

    play(tmp_path, scenario)


def test_a_declared_source_whose_revision_is_refused_refuses_the_commit(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a")
        await place.publisher.refresh()
        declaring = place.publisher._source.newest()
        too_much = Diagnostic(code="PUB007", what="the source more is refused: it holds too much")
        revisions = (declaring.revision, SourceRevision("git:more", "1" * 40, folder="sources/more"))

        def newest() -> Snapshot:
            raise SourcesError([too_much], declaring, revisions)

        place.publisher._source.newest = newest  # type: ignore[method-assign]
        attempt = await place.publisher.refresh()
        assert attempt.publication is Publication.REFUSED
        assert codes(attempt) == {"PUB007"}
        assert attempt.sources[:2] == revisions
        assert attempt.sequence == 1

    play(tmp_path, scenario)
