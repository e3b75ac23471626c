"""The register of claims: one holder for each thing on a host, whoever asks, whenever somebody dies."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from lehr.base.blocking import Inline
from lehr.base.errors import TransientError
from lehr.model.asset import AssetId, Partition
from lehr.sdk.claims import Conflict
from lehr.sdk.protected import Protected
from lehr.store.claims import HostClaims, real_name
from lehr.store.opening import is_gone
from lehr.store.sqlite.claims import ClaimFile

SHOP, BLOG = Partition("shop"), Partition("blog")


def ids(claims: Mapping[str, Collection[str]]) -> dict[AssetId, Collection[str]]:
    return {AssetId(id): claimed for id, claimed in claims.items()}


class Host:
    """Control planes that share a register."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "claims.sqlite"

    def state(self, name: str) -> Path:
        state = self.folder / name
        state.mkdir(exist_ok=True)
        (state / "state.sqlite").touch()
        return state

    def of(self, name: str, base: Path | None = None, store: str = "") -> HostClaims:
        """As the control plane with this state folder sees it."""
        state = self.state(name)
        file = ClaimFile(self.file, lambda place: not is_gone(Path(place) / "state.sqlite"))
        return HostClaims(file, store or str(state), state, base or self.folder, Inline(), Inline())


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def take(
    claims: HostClaims, partition: Partition, wanted: Mapping[str, Collection[str]], *, only: bool = True
) -> list[Conflict]:
    return list(asyncio.run(claims.take(partition, ids(wanted), only=only)))


def conflicts(
    claims: HostClaims, partition: Partition, wanted: Mapping[str, Collection[str]]
) -> list[Conflict]:
    return list(asyncio.run(claims.conflicts(partition, ids(wanted))))


def release(claims: HostClaims, partition: Partition, *assets: str) -> None:
    asyncio.run(claims.release(partition, [AssetId(id) for id in assets]))


def test_a_second_claimant_is_refused_and_told_who_holds_it(host: Host) -> None:
    one, other = host.of("one"), host.of("other")
    assert not take(one, SHOP, {"web": ["port:8080", "port:8081"]})
    [found] = take(other, BLOG, {"proxy": ["port:8081", "port:9000"]})
    assert (found.asset, found.what) == ("proxy", "port 8081")
    assert (found.holder.partition, found.holder.asset) == (SHOP, "web")
    assert found.holder.state == str(host.state("one"))
    assert not found.holder.ours
    assert not take(host.of("third"), BLOG, {"x": ["port:9000"]}), "of a refused one nothing was taken"


def test_paths_are_the_same_if_they_lead_to_the_same_file(host: Host, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "link").symlink_to("etc")
    one, other = host.of("one", tmp_path / "etc"), host.of("other", tmp_path)
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
    host: Host, tmp_path: Path
) -> None:
    claims = host.of("one", tmp_path)
    [found] = conflicts(claims, SHOP, {"a": ["file:motd"], "b": [f"file:{tmp_path}/motd"]})
    assert (found.asset, found.holder.asset, found.holder.ours) == ("b", "a", True)
    assert not take(claims, SHOP, {"a": ["file:motd"]})
    [found] = conflicts(claims, SHOP, {"b": [f"file:{tmp_path}/motd"]})
    assert (found.holder.asset, found.holder.ours) == ("a", True)
    assert not conflicts(claims, SHOP, {"a": [], "b": [f"file:{tmp_path}/motd"]}), "it passes from a to b"
    assert not conflicts(claims, SHOP, {"a": ["file:motd"]})


def test_what_an_asset_claims_no_more_is_free(host: Host) -> None:
    one, other = host.of("one"), host.of("other")
    take(one, SHOP, {"web": ["port:1", "port:2"], "db": ["port:3"]})
    take(one, SHOP, {"web": ["port:2"]}, only=False)
    assert take(other, BLOG, {"x": ["port:1"]}), "a push releases nothing"
    take(one, SHOP, {"web": ["port:2"]})
    assert not take(other, BLOG, {"x": ["port:1"]})
    release(one, SHOP, "db")
    assert not take(other, BLOG, {"x": ["port:1", "port:3"]})
    assert take(other, BLOG, {"y": ["port:2"]})


def test_a_transfer_within_a_partition_keeps_the_claim(host: Host) -> None:
    one, other = host.of("one"), host.of("other")
    take(one, SHOP, {"a": ["port:1"]})
    take(one, SHOP, {"b": ["port:1"]})
    release(one, SHOP, "a")
    assert take(other, BLOG, {"x": ["port:1"]})


def test_claims_of_a_state_folder_that_is_gone_are_free(host: Host) -> None:
    one, other = host.of("one"), host.of("other")
    take(one, SHOP, {"web": ["port:1"]})
    (host.state("one") / "state.sqlite").unlink()
    assert not conflicts(other, BLOG, {"x": ["port:1"]})
    assert not take(other, BLOG, {"x": ["port:1"]})


def test_a_state_folder_that_cannot_be_looked_at_is_not_gone(host: Host, tmp_path: Path) -> None:
    assert is_gone(tmp_path / "nowhere" / "state.sqlite")
    assert not is_gone(tmp_path / ("x" * 300) / "state.sqlite")


def test_two_state_folders_with_one_store_are_one_owner(host: Host) -> None:
    place = "postgresql://host/lehr"
    one, other = host.of("one", store=place), host.of("other", store=place)
    take(one, SHOP, {"web": ["port:1"]})
    assert not take(other, SHOP, {"web": ["port:1"]})
    assert take(other, BLOG, {"web": ["port:1"]}), "another partition of the store is another owner"


def test_a_register_that_is_lost_is_filled_again(host: Host) -> None:
    one, other = host.of("one"), host.of("other")
    take(one, SHOP, {"web": ["port:1"]})
    assert asyncio.run(one.known(SHOP))
    host.file.unlink()
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
from lehr.base.blocking import Inline
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
    running = [
        subprocess.Popen(
            [sys.executable, "-c", TAKER, host.file, state, f"p{number}"], stdout=subprocess.PIPE, text=True
        )
        for number, state in enumerate(states)
    ]
    taken = [int(process.communicate(timeout=60)[0]) for process in running]
    assert sum(taken) == 50
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
