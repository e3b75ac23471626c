"""Several registers of one host: a thing is held only if all grant it; what one refuses, none keeps."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest

from lehr.base.blocking import Inline, Threads
from lehr.base.errors import TransientError
from lehr.model.asset import AssetId, Partition
from lehr.sdk.claims import Holder
from lehr.store import claims as claims_of_host
from lehr.store.claims import HostClaims, Owner, Register
from lehr.store.postgres import Address, PostgresStore, connections
from lehr.store.postgres.claims import ClaimTable
from lehr.store.registers import Registers
from lehr.store.sqlite.claims import ClaimFile
from tests.codes import raises
from tests.integration.store.test_claims import BLOG, SHOP, conflicts, ids, release, take
from tests.postgres import PostgresServer

Make = Callable[[], Address]
Table = TypeVar("Table", ClaimFile, ClaimTable)


class Machine:
    """A host with several users, each with a file of their own, and a database."""

    def __init__(self, folder: Path, make_address: Make) -> None:
        self.folder = folder
        self.opened: list[Register] = []
        self._make_address = make_address

    def file(self, user: str) -> ClaimFile:
        return self._kept(ClaimFile(self.folder / f"{user}.sqlite", lambda _: True))

    def table(self, host: str = "", address: Address | None = None) -> ClaimTable:
        """As a new store knows it."""
        if address is None:
            address = self._make_address()
            PostgresStore(address).close()
        return self._kept(ClaimTable(address, host or str(self.folder)))

    def _kept(self, register: Table) -> Table:
        self.opened.append(register)
        return register

    def of(self, name: str, *registers: Register) -> HostClaims:
        state = self.folder / name
        return HostClaims(Registers(registers), name, state, self.folder, Inline(), Inline())


@pytest.fixture
def machine(tmp_path: Path, make_address: Make) -> Iterator[Machine]:
    made = Machine(tmp_path, make_address)
    yield made
    for register in made.opened:
        register.close()


def held(register: Register) -> dict[str, tuple[str, str]]:
    """Who holds what."""
    assert isinstance(register, ClaimFile | ClaimTable)
    return {item.name: (item.holder.partition, item.holder.asset) for item in register.all()}


def test_two_users_whose_stores_are_in_one_database_refuse_each_others_claims(machine: Machine) -> None:
    anas, bens = machine.file("ana"), machine.file("ben")
    ana, ben = machine.of("one", anas, machine.table()), machine.of("other", bens, machine.table())
    assert not take(ana, SHOP, {"web": ["port:1", "port:2"]})
    for partition in (BLOG, SHOP):
        for found in (
            take(ben, partition, {"x": ["port:2", "port:3"]}),
            conflicts(ben, partition, {"x": ["port:2"]}),
        ):
            assert [(item.what, item.holder.asset, item.holder.ours) for item in found] == [
                ("port 2", "web", False)
            ]
            assert found[0].holder.state == str(machine.folder / "one")
    assert held(bens) == {}, "what is refused is held nowhere"
    release(ana, SHOP, "web")
    assert not take(ben, BLOG, {"x": ["port:2", "port:3"]})
    assert held(bens) == {"port:2": ("blog", "x"), "port:3": ("blog", "x")}


def test_one_in_a_file_and_one_in_the_database_see_each_other(machine: Machine) -> None:
    table = machine.table()
    one, other = machine.of("one", machine.file("ana")), machine.of("other", machine.file("ana"), table)
    assert not take(one, SHOP, {"web": ["port:1"]})
    assert take(other, BLOG, {"x": ["port:1", "port:2"]})
    assert held(table) == {}, "what is refused is held nowhere"
    assert not take(other, BLOG, {"x": ["port:2"]})
    assert take(one, SHOP, {"web": ["port:2"]})


def test_hosts_that_share_a_database_share_no_claims(machine: Machine) -> None:
    one, other = machine.of("one", machine.table("a")), machine.of("other", machine.table("b"))
    assert not take(one, SHOP, {"web": ["port:1"]})
    assert not take(other, BLOG, {"x": ["port:1"]})


class Late:
    """A register of which others take something, or which is away, after it was looked at."""

    def __init__(self, then: Callable[[], object]) -> None:
        self.then = then

    def known(self, owner: Owner) -> bool:
        return True

    def holders(self, owner: Owner, names: Collection[str]) -> dict[str, Holder]:
        return {}

    def holding(self, owner: Owner, names: Mapping[AssetId, Collection[str]]) -> set[AssetId]:
        return set()

    def take(
        self,
        owner: Owner,
        names: Mapping[AssetId, Collection[str]],
        *,
        only: bool,
        free: bool,
        over: Collection[AssetId] = (),
    ) -> dict[str, Holder]:
        self.then()
        return {"port:2": Holder(BLOG, "/elsewhere", AssetId("x"))}

    def assets(self, owner: Owner) -> set[AssetId]:
        return set()

    def moved(self, owner: Owner) -> set[AssetId]:
        return set()

    def release(self, owner: Owner, names: Mapping[AssetId, Collection[str] | None]) -> None:
        pass

    def close(self) -> None:
        pass


def _away() -> None:
    raise TransientError("the server is away")


BEFORE = {"port:1": ("shop", "web"), "port:3": ("shop", "db"), "port:4": ("shop", "web")}


@pytest.fixture(params=["file", "table"])
def first(request: pytest.FixtureRequest, machine: Machine) -> Register:
    """A register in which `BEFORE` is held."""
    made: Register = machine.file("ana") if request.param == "file" else machine.table()
    take(machine.of("one", made), SHOP, {"web": ["port:1", "port:4"], "db": ["port:3"]})
    assert held(made) == BEFORE
    return made


@pytest.mark.parametrize("only", [True, False])
def test_what_a_later_register_refuses_is_given_back_to_the_first(
    machine: Machine, first: Register, only: bool
) -> None:
    late = machine.of("one", first, Late(lambda: None))
    [found] = take(late, SHOP, {"web": ["port:1", "port:2", "port:3"]}, only=only, over=["db"])
    assert (found.what, found.holder.partition) == ("port 2", "blog")
    assert held(first) == BEFORE


def test_what_a_later_register_cannot_grant_is_given_back_to_the_first(
    machine: Machine, first: Register
) -> None:
    wanted = {"web": ["port:1", "port:2", "port:3"]}
    with pytest.raises(TransientError, match="is away"):
        take(machine.of("one", first, Late(_away)), SHOP, wanted, over=["db"])
    assert held(first) == BEFORE


def test_of_what_is_taken_up_again_only_what_all_grant_is_kept(machine: Machine, first: Register) -> None:
    late = machine.of("one", first, Late(lambda: None))
    asyncio.run(late.take_free(SHOP, ids({"web": ["port:1", "port:2", "port:5"]})))
    assert held(first) == {**BEFORE, "port:5": ("shop", "web")}


def test_what_another_holds_in_one_register_is_taken_up_in_none(machine: Machine) -> None:
    file, table = machine.file("ana"), machine.table()
    take(machine.of("other", file), BLOG, {"x": ["port:9"]})
    asyncio.run(machine.of("one", file, table).take_free(SHOP, ids({"web": ["port:5", "port:9"]})))
    assert held(table) == {"port:5": ("shop", "web")}


def test_what_an_asset_claims_no_more_is_free_in_all(machine: Machine) -> None:
    file, table = machine.file("ana"), machine.table()
    one = machine.of("one", file, table)
    take(one, SHOP, {"web": ["port:1", "port:2"]})
    take(one, SHOP, {"web": ["port:2"]}, only=False)
    assert asyncio.run(one.moved(SHOP)) == {"web"}
    take(one, SHOP, {"web": ["port:2"]})
    assert not asyncio.run(one.moved(SHOP))
    assert held(file) == held(table) == {"port:2": ("shop", "web")}


def test_a_register_that_has_just_been_joined_is_filled(machine: Machine) -> None:
    file, table = machine.file("ana"), machine.table()
    take(machine.of("one", file), SHOP, {"web": ["port:1"]})
    both = machine.of("one", file, table)
    assert not asyncio.run(both.known(SHOP))
    assert not take(both, SHOP, {"web": ["port:1"]}, only=False), "as before a push"
    assert held(table) == {"port:1": ("shop", "web")}


def test_a_server_that_is_away_is_said_and_nothing_is_taken(
    server: PostgresServer, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "FIRST_PAUSE", 0.0)
    file, table = machine.file("ana"), machine.table()
    one = machine.of("one", file, table)
    take(one, SHOP, {"web": ["port:1"]})
    server.stop()
    try:
        with raises("STO116", TransientError, match=r"the register of claims in postgresql.*does not answer"):
            take(one, SHOP, {"web": ["port:1", "port:2"]})
        assert held(file) == {"port:1": ("shop", "web")}
    finally:
        server.start()
    assert not take(one, SHOP, {"web": ["port:1", "port:2"]})
    assert held(table) == {"port:1": ("shop", "web"), "port:2": ("shop", "web")}


def test_a_register_that_hangs_is_not_waited_for_without_an_end(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims_of_host, "_REGISTER_SECONDS", 0.05)
    back = threading.Event()
    late = Registers([Late(back.wait)])
    claims = HostClaims(late, "one", machine.folder, machine.folder, Inline(), Threads("claims", 1))

    async def asked() -> None:
        for _ in range(2):
            with raises("STO105", TransientError):
                await claims.take(SHOP, ids({"web": ["port:1"]}), only=True)
        back.set()
        monkeypatch.setattr(claims_of_host, "_REGISTER_SECONDS", 15.0)
        assert await claims.take(SHOP, ids({"web": ["port:2"]}), only=True)
        await claims.close()

    asyncio.run(asked())


def test_a_schema_that_was_dropped_is_said_and_made_again(server: PostgresServer, machine: Machine) -> None:
    table = machine.table()
    one = machine.of("one", table)
    take(one, SHOP, {"web": ["port:1"]})
    server.run("DROP SCHEMA lehr_claims CASCADE")
    with raises("STO116", TransientError, match="it was dropped"):
        take(one, SHOP, {"web": ["port:1"]})
    assert not take(one, SHOP, {"web": ["port:1"]})
    assert held(table) == {"port:1": ("shop", "web")}


def test_a_role_that_may_not_use_it_is_told_what_to_grant(
    server: PostgresServer, machine: Machine, make_address: Make
) -> None:
    take(machine.of("one", machine.table()), SHOP, {"web": ["port:1"]})
    server.run("CREATE ROLE ben LOGIN")
    bens = machine.table(address=Address(make_address().url.replace("user=plays", "user=ben")))
    with raises("STO116", TransientError, match="no access to schema lehr_claims") as caught:
        take(machine.of("other", bens), BLOG, {"x": ["port:2"]})
    assert "USAGE on schema lehr_claims" in caught.value.fix
    server.run("GRANT USAGE ON SCHEMA lehr_claims TO ben")
    server.run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA lehr_claims TO ben")
    assert take(machine.of("other", bens), BLOG, {"x": ["port:1"]}), (
        "it sees the others, but not their stores"
    )
    assert not take(machine.of("other", bens), BLOG, {"x": ["port:2"]})


def test_who_only_looks_makes_no_register(
    server: PostgresServer, machine: Machine, make_address: Make
) -> None:
    file = ClaimFile(machine.folder / "none" / "claims.sqlite", lambda _: True, read_only=True)
    with raises("STO141", TransientError):
        conflicts(machine.of("one", file), SHOP, {"web": ["port:1"]})
    assert not (machine.folder / "none").exists()
    server.run("CREATE DATABASE without_claims")
    address = Address(make_address().url.replace("dbname=postgres", "dbname=without_claims"))
    table = machine._kept(ClaimTable(address, "host", read_only=True))
    with raises("STO119", TransientError):
        conflicts(machine.of("one", table), SHOP, {"web": ["port:1"]})
    found = server.run("SELECT FROM pg_namespace WHERE nspname = 'lehr_claims'", database="without_claims")
    assert found == []


def test_who_only_looks_finds_what_others_hold_and_changes_nothing(machine: Machine) -> None:
    take(machine.of("one", machine.file("ana")), SHOP, {"web": ["port:1"]})
    looking = ClaimFile(machine.folder / "ana.sqlite", lambda _: True, read_only=True)
    [found] = conflicts(machine.of("other", looking), BLOG, {"x": ["port:1"]})
    assert found.holder.asset == "web"
    with raises("STO140", TransientError, match="readonly database"):
        take(machine.of("other", looking), BLOG, {"x": ["port:2"]})
    looking.close()


def test_a_claim_is_released_by_the_state_folder_of_its_owner(machine: Machine) -> None:
    table = machine.table()
    take(machine.of("one", table), SHOP, {"web": ["port:1", "port:2"]})
    take(machine.of("other", machine.table()), BLOG, {"x": ["port:3"]})
    assert table.release_state(str(machine.folder / "one")) == {"port:1", "port:2"}
    assert held(table) == {"port:3": ("blog", "x")}


def test_claims_of_stores_that_are_gone_are_removed_from_the_list(
    machine: Machine, make_address: Make
) -> None:
    address = make_address()
    PostgresStore(address).close()
    table = machine.table()
    take(machine.of("one", machine.table(address=address)), SHOP, {"web": ["port:1"]})
    assert held(table) == {"port:1": ("shop", "web")}
    with psycopg.connect(address.conninfo) as db:
        db.execute(f"DROP SCHEMA {address.schema} CASCADE".encode())
    assert held(table) == {}


def test_of_threads_that_claim_at_the_same_time_one_gets_each_thing(machine: Machine) -> None:
    claiming = [(Partition(f"p{number}"), machine.of(f"s{number}", machine.table())) for number in range(3)]
    taken: list[int] = []

    def run(partition: Partition, claims: HostClaims) -> None:
        wanted = ({f"a{number}": [f"port:{number}", f"folder:/{number}"]} for number in range(50))
        taken.append(sum(not take(claims, partition, item) for item in wanted))

    running = [threading.Thread(target=run, args=item) for item in claiming]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert sum(taken) == 50
    holders = held(machine.opened[0])
    assert len(holders) == 100
    assert all(holders[f"port:{number}"] == holders[f"path:/{number}"] for number in range(50))
