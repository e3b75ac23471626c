"""The register of claims: one holder for each thing on a host, whoever asks, whenever somebody dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import psycopg
import pytest

from lehr.base.blocking import Inline, Threads
from lehr.base.errors import TransientError
from lehr.model.asset import AssetId, Partition
from lehr.sdk.claims import Conflict
from lehr.sdk.protected import Protected
from lehr.store import claims as claims_of_host
from lehr.store.claims import HostClaims, Register, real_name
from lehr.store.locations import is_gone
from lehr.store.postgres import Address, PostgresStore
from lehr.store.postgres.claims import ClaimTable
from lehr.store.sqlite.claims import ClaimFile
from tests.codes import raises

SHOP, BLOG = Partition("shop"), Partition("blog")


def ids(claims: Mapping[str, Collection[str]]) -> dict[AssetId, Collection[str]]:
    return {AssetId(id): claimed for id, claimed in claims.items()}


class Host:
    """Control planes that share a register in a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "claims.sqlite"
        self.opened: list[Register] = []

    def state(self, name: str) -> Path:
        state = self.folder / name
        state.mkdir(exist_ok=True)
        (state / "state.sqlite").touch()
        return state

    def of(self, name: str, base: Path | None = None, store: str = "") -> HostClaims:
        """As the control plane with this state folder sees it."""
        state = self.state(name)
        register = self.register(store or name)
        self.opened.append(register)
        return HostClaims(register, store or str(state), state, base or self.folder, Inline(), Inline())

    def register(self, store: str) -> Register:
        """As one store knows it."""
        return ClaimFile(self.file, lambda place: not is_gone(Path(place) / "state.sqlite"))

    def remove_store(self, name: str) -> None:
        (self.state(name) / "state.sqlite").unlink()

    def lose(self) -> None:
        """The register forgets all."""
        self.file.unlink()

    def close(self) -> None:
        for register in self.opened:
            register.close()


class DatabaseHost(Host):
    """Control planes that share one in a database, each with a store of its own there."""

    def __init__(self, folder: Path, make_address: Callable[[], Address]) -> None:
        super().__init__(folder)
        self._stores: dict[str, Address] = defaultdict(make_address)
        self.name = f"host of {folder}"

    def register(self, store: str) -> Register:
        return ClaimTable(self.address(store), self.name)

    def address(self, store: str) -> Address:
        """Of a store, which is made when it is first asked for."""
        if store not in self._stores:
            PostgresStore(self._stores[store]).close()
        return self._stores[store]

    def remove_store(self, name: str) -> None:
        self.run(f"DROP SCHEMA {self._stores[name].schema} CASCADE")

    def lose(self) -> None:
        self.run(f"DELETE FROM lehr_claims.claim WHERE host = '{self.name}'")

    def run(self, statement: str) -> None:
        [address, *_] = self._stores.values()
        with psycopg.connect(address.conninfo) as db:
            db.execute(statement.encode())


@pytest.fixture(params=["file", "database"])
def shared(
    request: pytest.FixtureRequest, tmp_path: Path, make_address: Callable[[], Address]
) -> Iterator[Host]:
    """Each kind of register."""
    made = Host(tmp_path) if request.param == "file" else DatabaseHost(tmp_path, make_address)
    yield made
    made.close()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    made.close()


def take(
    claims: HostClaims,
    partition: Partition,
    wanted: Mapping[str, Collection[str]],
    *,
    only: bool = True,
    over: Collection[str] = (),
) -> list[Conflict]:
    yielding = [AssetId(id) for id in over]
    return list(asyncio.run(claims.take(partition, ids(wanted), only=only, over=yielding)))


def conflicts(
    claims: HostClaims, partition: Partition, wanted: Mapping[str, Collection[str]]
) -> list[Conflict]:
    return list(asyncio.run(claims.conflicts(partition, ids(wanted))))


def release(claims: HostClaims, partition: Partition, *assets: str) -> None:
    asyncio.run(claims.release(partition, [AssetId(id) for id in assets]))


def test_a_second_claimant_is_refused_and_told_who_holds_it(shared: Host) -> None:
    one, other = shared.of("one"), shared.of("other")
    assert not take(one, SHOP, {"web": ["port:8080", "port:8081"]})
    [found] = take(other, BLOG, {"proxy": ["port:8081", "port:9000"]})
    assert (found.asset, found.what) == ("proxy", "port 8081")
    assert (found.holder.partition, found.holder.asset) == (SHOP, "web")
    assert found.holder.state == str(shared.state("one"))
    assert not found.holder.ours
    assert not take(shared.of("third"), BLOG, {"x": ["port:9000"]}), "of a refused one nothing was taken"


def test_paths_are_the_same_if_they_lead_to_the_same_file(shared: Host, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "link").symlink_to("etc")
    one, other = shared.of("one", tmp_path / "etc"), shared.of("other", tmp_path)
    assert not take(one, SHOP, {"motd": ["file:motd"]})
    for claim in (f"file:{tmp_path}/etc/motd", "file:link/motd", "folder:etc/motd"):
        [found] = take(other, BLOG, {"x": [claim]})
        assert found.holder.asset == "motd"
    assert found.real == f"path:{tmp_path}/etc/motd"
    assert not take(other, BLOG, {"x": ["file:etc/other"]})


def test_a_link_at_the_end_of_a_files_path_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    (tmp_path / "motd").symlink_to("target")
    assert real_name("file:motd", tmp_path) == f"path:{tmp_path}/motd"
    assert real_name("folder:motd", tmp_path) == f"path:{tmp_path}/target"
    assert real_name("database:sqlite:motd/main", tmp_path) == f"database:sqlite:{tmp_path}/target/main"


def test_two_assets_of_one_partition_with_one_file_are_found_by_their_real_paths(
    shared: Host, tmp_path: Path
) -> None:
    claims = shared.of("one", tmp_path)
    [found] = conflicts(claims, SHOP, {"a": ["file:motd"], "b": [f"file:{tmp_path}/motd"]})
    assert (found.asset, found.holder.asset, found.holder.ours) == ("b", "a", True)
    assert not take(claims, SHOP, {"a": ["file:motd"]})
    [found] = conflicts(claims, SHOP, {"b": [f"file:{tmp_path}/motd"]})
    assert (found.holder.asset, found.holder.ours) == ("a", True)
    assert not conflicts(claims, SHOP, {"a": [], "b": [f"file:{tmp_path}/motd"]}), "it passes from a to b"
    assert not conflicts(claims, SHOP, {"a": ["file:motd"]})


def test_what_an_asset_claims_no_more_is_free(shared: Host) -> None:
    one, other = shared.of("one"), shared.of("other")
    take(one, SHOP, {"web": ["port:1", "port:2"], "db": ["port:3"]})
    take(one, SHOP, {"web": ["port:2"]}, only=False)
    assert take(other, BLOG, {"x": ["port:1"]}), "a push releases nothing"
    take(one, SHOP, {"web": ["port:2"]})
    assert not take(other, BLOG, {"x": ["port:1"]})
    release(one, SHOP, "db")
    assert not take(other, BLOG, {"x": ["port:1", "port:3"]})
    assert take(other, BLOG, {"y": ["port:2"]})


def test_it_knows_which_assets_may_hold_more_than_they_took_last(shared: Host) -> None:
    one, other = shared.of("one"), shared.of("other")

    def moved() -> set[str]:
        return set(asyncio.run(one.moved(SHOP)))

    take(one, SHOP, {"web": ["port:1", "port:2"], "db": ["port:3"], "api": ["port:4"]}, only=False)
    take(other, BLOG, {"x": ["port:9"]}, only=False)
    assert not moved()
    take(one, SHOP, {"web": ["port:2"]}, only=False)
    take(one, SHOP, {"db": ["port:5"]}, only=False)
    take(one, SHOP, {"api": ["port:4", "port:6"]}, only=False)
    take(other, BLOG, {"x": ["port:8"]}, only=False)
    assert moved() == {"web", "db"}
    assert set(asyncio.run(shared.of("one").moved(SHOP))) == {"web", "db"}
    take(one, SHOP, {"web": ["port:1"]}, only=False)
    assert moved() == {"web", "db"}, "it still holds another"
    take(one, SHOP, {"web": ["port:1"]})
    assert moved() == {"db"}
    take(one, SHOP, {"api": []}, only=False)
    assert moved() == {"api", "db"}
    release(one, SHOP, "api")
    assert moved() == {"db"}
    take(one, SHOP, {"db": ["port:3"]})
    assert not moved()


def test_a_transfer_within_a_partition_keeps_the_claim(shared: Host) -> None:
    one, other = shared.of("one"), shared.of("other")
    take(one, SHOP, {"a": ["port:1"], "c": ["port:2"]})
    assert not take(one, SHOP, {"b": ["port:1"]}, over=["a"])
    release(one, SHOP, "a")
    assert take(other, BLOG, {"x": ["port:1"]})
    assert not take(one, SHOP, {"b": ["port:2"], "c": ["port:1"]}), "they change places"
    release(one, SHOP, "c")
    assert take(other, BLOG, {"x": ["port:2"]})
    assert not take(other, BLOG, {"x": ["port:1"]})


@pytest.mark.parametrize("only", [True, False])
def test_within_a_partition_nothing_passes_on_from_who_still_holds_it(shared: Host, only: bool) -> None:
    one, other = shared.of("one"), shared.of("other")
    take(one, SHOP, {"old": ["port:1"], "web": ["port:3"]})
    [found] = take(one, SHOP, {"new": ["port:1", "port:2"], "web": ["port:4"]}, only=only)
    assert (found.asset, found.claim, found.holder.asset, found.holder.ours) == ("new", "port:1", "old", True)
    assert asyncio.run(one.assets(SHOP)) == {"old", "web"}
    assert not take(other, BLOG, {"x": ["port:2"]}), "of a refused one nothing was taken"
    asyncio.run(one.take_free(SHOP, ids({"new": ["port:1", "port:5"]})))
    release(one, SHOP, "old")
    assert not take(other, BLOG, {"x": ["port:1"]}), "it was not handed on"
    assert take(other, BLOG, {"x": ["port:5"]})


def test_claims_of_a_store_that_is_gone_are_free(shared: Host) -> None:
    one, other = shared.of("one"), shared.of("other")
    take(one, SHOP, {"web": ["port:1"]})
    shared.remove_store("one")
    assert not conflicts(other, BLOG, {"x": ["port:1"]})
    assert not take(other, BLOG, {"x": ["port:1"]})


def test_a_state_folder_that_cannot_be_looked_at_is_not_gone(host: Host, tmp_path: Path) -> None:
    assert is_gone(tmp_path / "nowhere" / "state.sqlite")
    assert not is_gone(tmp_path / ("x" * 300) / "state.sqlite")


def test_two_state_folders_with_one_store_are_one_owner(shared: Host) -> None:
    place = "postgresql://host/lehr"
    one, other = shared.of("one", store=place), shared.of("other", store=place)
    take(one, SHOP, {"web": ["port:1"]})
    assert not take(other, SHOP, {"web": ["port:1"]})
    assert take(other, BLOG, {"web": ["port:1"]}), "another partition of the store is another owner"


def test_a_register_that_is_lost_is_filled_again(shared: Host) -> None:
    one, other = shared.of("one"), shared.of("other")
    take(one, SHOP, {"web": ["port:1"]})
    assert asyncio.run(one.known(SHOP))
    shared.lose()
    assert not asyncio.run(one.known(SHOP))
    take(other, BLOG, {"x": ["port:2"]})
    asyncio.run(one.take_free(SHOP, ids({"web": ["port:1"], "db": ["port:2"]})))
    assert take(other, BLOG, {"y": ["port:1"]})
    assert not take(other, BLOG, {"x": ["port:2"]}), "it keeps what it took"


def test_a_damaged_register_is_said_and_not_overwritten(host: Host) -> None:
    host.file.write_text("not a database, and longer than a header of SQLite would be" * 10)
    with pytest.raises(TransientError) as raised:
        take(host.of("one"), SHOP, {"web": ["port:1"]})
    assert str(host.file) in raised.value.what
    assert "remove it" in raised.value.fix
    assert host.file.read_text().startswith("not a database")


def test_only_its_owner_may_read_it(host: Host) -> None:
    take(host.of("one"), SHOP, {"web": ["port:1"]})
    assert host.file.stat().st_mode & 0o777 == 0o600


TAKER = """
import asyncio, sys
from pathlib import Path
from lehr.base.blocking import Inline, Threads
from lehr.store.claims import HostClaims
from lehr.store.sqlite.claims import ClaimFile

file, state, name = sys.argv[1:]
register = ClaimFile(Path(file), lambda place: True)
claims = HostClaims(register, state, Path(state), Path("/"), Inline(), Inline())

async def main():
    taken = 0
    for number in range(50):
        wanted = {f"a{number}": [f"port:{number}", f"folder:/{number}"]}
        taken += not await claims.take(name, wanted, only=True)
        await asyncio.sleep(0.001)
    print(taken)

asyncio.run(main())
"""


def test_of_processes_that_claim_at_the_same_time_one_gets_each_thing(host: Host) -> None:
    states = [host.state(f"s{number}") for number in range(3)]
    commands = [
        [sys.executable, "-c", TAKER, str(host.file), str(state), f"p{number}"]
        for number, state in enumerate(states)
    ]
    with contextlib.ExitStack() as ended:
        running = [
            ended.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            for command in commands
        ]
        printed = [process.communicate(timeout=60)[0] for process in running]
    assert sum(map(int, printed)) == 50
    with sqlite3.connect(host.file) as db:
        rows = db.execute("SELECT count(*), count(DISTINCT name) FROM claim").fetchone()
        owners = db.execute("SELECT count(DISTINCT partition) FROM claim GROUP BY asset").fetchall()
    db.close()
    assert rows == (100, 100)
    assert set(owners) == {(1,)}, "nobody gets half of what he asks for"


def test_a_process_that_is_killed_leaves_the_register_whole_and_unlocked(host: Host) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", TAKER.replace("range(50)", "range(10**6)"), host.file, host.state("s"), "p"],
        stdout=subprocess.DEVNULL,
    )
    one = host.of("one")
    try:
        while not host.file.exists() or not conflicts(one, SHOP, {"x": ["port:3"]}):
            assert process.poll() is None
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with sqlite3.connect(host.file) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("SELECT asset FROM claim GROUP BY asset HAVING count(*) != 2").fetchall() == []
    db.close()
    assert not take(one, SHOP, {"x": ["port:999999999"]})


@pytest.mark.parametrize(
    "claim",
    [
        "file:state/lock",
        "file:link/lock",
        "file:link",
        "folder:link",
        "folder:state/supervisor",
        "database:sqlite:state/state.sqlite/main",
        "database:sqlite:alias.sqlite/main",
        "file:work/.git/hooks/post-commit",
        "file:hooks/post-commit",
    ],
)
def test_nothing_that_leads_into_the_state_or_a_repository_can_be_claimed(host: Host, claim: str) -> None:
    state = host.state("state")
    (host.folder / "link").symlink_to("state")
    (host.folder / "alias.sqlite").symlink_to("state/state.sqlite")
    (host.folder / "work" / ".git" / "hooks").mkdir(parents=True)
    (host.folder / "hooks").symlink_to("work/.git/hooks")
    claims = HostClaims(
        ClaimFile(host.file, lambda _: True),
        "store",
        state,
        host.folder,
        Inline(),
        Inline(),
        protected=Protected({host.folder / "link": "the state folder"}),
    )
    for found in (conflicts(claims, SHOP, {"a": [claim]}), take(claims, SHOP, {"a": [claim]})):
        assert [item.asset for item in found] == ["a"]
        assert found[0].protected
    assert not conflicts(claims, SHOP, {"a": ["file:work/x", "folder:work", "port:1"]})


def test_a_path_that_cannot_be_looked_at_is_said(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims_of_host, "_RESOLVE_SECONDS", 0.05)
    back = threading.Event()

    def hangs(path: str, *, entry: bool, seen: dict[str, str]) -> str:
        back.wait()
        return ""

    protected = Protected({})
    monkeypatch.setattr(protected, "why", hangs)
    claims = HostClaims(
        host.register("one"),
        "store",
        host.folder,
        host.folder,
        Threads("claimed paths", 2),
        Inline(),
        protected=protected,
    )
    wanted = ids({"motd": ["file:motd"]})
    try:
        for asked in (claims.conflicts(SHOP, wanted), claims.take(SHOP, wanted, only=False)):
            with raises("STO104", TransientError):
                asyncio.run(asked)
    finally:
        back.set()
    asyncio.run(claims.close())


def test_a_path_that_leads_to_a_name_that_is_no_text_is_claimed_like_any_other(
    shared: Host, tmp_path: Path
) -> None:
    folder = Path(os.fsdecode(bytes(tmp_path) + b"/\xff"))
    (folder / ".git").mkdir(parents=True)
    (tmp_path / "link").symlink_to(folder)
    one, other = shared.of("one"), shared.of("other")
    assert not take(one, SHOP, {"motd": [f"file:{tmp_path}/link/motd"]})
    for found in (
        take(other, BLOG, {"x": ["file:link/motd"]}),
        conflicts(other, BLOG, {"x": ["file:link/motd"]}),
    ):
        assert [item.holder.asset for item in found] == ["motd"]
        assert found[0].what.encode()
    [kept_out] = take(other, BLOG, {"x": ["file:link/.git/config"]})
    assert kept_out.protected.encode()
    assert kept_out.what.encode()
