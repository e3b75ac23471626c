"""One plugin in another process serves several accounts, each a `lehr.Provider`, through `lehr run`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lehr.model.provider import PROVIDED_BY, PROVIDER
from tests.integration.plugins.remote.account_plugin import TOKEN, Entry
from tests.integration.plugins.remote.managed import HERE

TOKENS = {"TOKEN_A": "token-of-account-a", "TOKEN_B": "token-of-account-b"}


class Shop:
    """A workspace whose plugin serves the accounts `a` and `b`, and its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.assets: dict[str, dict[str, Any]] = {}
        for name in ("a", "b", "own"):
            self.account(name).mkdir(parents=True)
        for name in ("a", "b"):
            (self.account(name) / TOKEN).write_text(TOKENS[f"TOKEN_{name.upper()}"])
        (self.workspace / "types").mkdir(parents=True)
        (self.workspace / "assets").mkdir()
        self.write("lehr.yaml", "partition: shop\n")
        declared = {"name": "example.Entry", "enforced": True, "schema": msgspec.json.schema(Entry)}
        self.write("types/entry.json", json.dumps(declared))
        self.plugins(types=["example.Entry"])
        for name in ("a", "b"):
            self.provider(name)

    def account(self, name: str) -> Path:
        return self.folder / "accounts" / name

    def write(self, path: str, text: str) -> None:
        (self.workspace / path).write_text(text)

    def plugins(self, **definition: Any) -> None:
        paths = os.pathsep.join(path for path in sys.path if path)
        environment = {"PYTHONPATH": paths, "OWN_FOLDER": str(self.account("own"))}
        command = [sys.executable, str(HERE / "account_plugin.py")]
        plugin = {"command": command, "environment": environment, **definition}
        self.write("plugins.yaml", json.dumps({"plugins": {"accounts": plugin}}))

    def provider(self, name: str, **more: Any) -> None:
        config = {"folder": str(self.account(name)), "token": {"secret": f"env:TOKEN_{name.upper()}"}}
        payload = {"plugin": "accounts", "config": config, **more}
        self.assets[f"accounts/{name}"] = {"type": PROVIDER, "payload": payload}

    def entry(self, id: str, account: str | None) -> None:
        addons = {} if account is None else {PROVIDED_BY: {"provider": f"accounts/{account}"}}
        payload = {"name": id, "text": "hello"}
        self.assets[id] = {"type": "example.Entry", "payload": payload, "addons": addons}

    def save(self) -> None:
        every = [{"id": id, **asset} for id, asset in self.assets.items()]
        self.write("assets/all.yaml", "\n---\n".join(json.dumps(asset, indent=1) for asset in every))

    def environment(self) -> dict[str, str]:
        state = str(self.folder / "state")
        return {**os.environ, **TOKENS, "LEHR_PLUGINS": "plugins.yaml", "LEHR_STATE": state}

    def call(self, *arguments: str, code: int | None = 0) -> str:
        self.save()
        done = subprocess.run(
            [sys.executable, "-m", "lehr", *arguments],
            cwd=self.workspace,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=150,
        )
        printed = done.stdout + done.stderr
        assert code is None or done.returncode == code, printed
        for token in TOKENS.values():
            assert token not in printed
        return printed

    def entries(self, account: str) -> dict[str, str]:
        found = sorted(self.account(account).iterdir())
        return {path.name: path.read_text() for path in found if path.name != TOKEN}

    def looks(self, account: str) -> list[datetime]:
        """When the plugin has looked at files of an account, to the second."""
        (log,) = self.folder.rglob("accounts.log")
        lines = (line.split() for line in log.read_text().splitlines() if f"{self.account(account)}/" in line)
        return [datetime.fromisoformat(words[0]) for words in lines if "look" in words]

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """`lehr run` is active."""
        self.save()
        command = [sys.executable, "-m", "lehr", "run"]
        with (self.folder / "run.log").open("wb") as log:
            lehr = subprocess.Popen(
                command, cwd=self.workspace, env=self.environment(), stdout=log, stderr=log
            )
            try:
                yield
            finally:
                lehr.send_signal(signal.SIGTERM)
                lehr.wait(60)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_each_asset_is_kept_in_the_account_of_its_provider(shop: Shop) -> None:
    shop.entry("x", "a")
    shop.entry("y", "b")
    shop.entry("z", None)
    shop.call("run", "--once")
    assert shop.entries("a") == {"x": "hello"}
    assert shop.entries("b") == {"y": "hello"}
    assert shop.entries("own") == {"z": "hello"}
    assert f"accounts/a  (/addons/{PROVIDED_BY}/provider)" in shop.call("describe", "x")
    assert shop.call("plan") == "3 as intended\n"


def test_an_account_that_refuses_its_token_delays_no_other(shop: Shop) -> None:
    (shop.account("a") / TOKEN).write_text("another-token")
    shop.entry("x", "a")
    shop.entry("y", "b")
    shop.call("run", "--once", code=None)
    assert shop.entries("b") == {"y": "hello"}
    assert shop.entries("a") == {}
    assert "refuses the token" in shop.call("why", "x", code=None)


def test_a_changed_provider_moves_its_assets_and_no_others(shop: Shop) -> None:
    shop.entry("x", "a")
    shop.entry("y", "b")
    shop.call("run", "--once")
    shop.provider("b")
    shop.assets["accounts/a"]["payload"]["config"] = shop.assets["accounts/b"]["payload"]["config"]
    plan = shop.call("plan", code=None)
    assert "x" in plan
    assert "y (example.Entry)" not in plan
    shop.call("run", "--once")
    assert shop.entries("b") == {"x": "hello", "y": "hello"}


def test_a_changed_provider_wakes_its_assets(shop: Shop) -> None:
    """Long before their next regular comparison."""
    shop.entry("x", "a")
    shop.entry("y", "b")
    with shop.running():
        eventually(lambda: shop.entries("a") == {"x": "hello"} and shop.entries("b") == {"y": "hello"})
        eventually(lambda: len(shop.looks("b")) >= 3)  # it is compared, pushed and verified
        looks = len(shop.looks("b"))
        shop.assets["accounts/a"]["payload"]["config"]["folder"] = str(shop.account("moved"))
        shop.account("moved").mkdir()
        (shop.account("moved") / TOKEN).write_text(TOKENS["TOKEN_A"])
        shop.save()
        eventually(lambda: shop.entries("moved") == {"x": "hello"}, seconds=45)
        assert len(shop.looks("b")) == looks


def test_a_rate_is_kept_and_delays_no_other_account(shop: Shop) -> None:
    shop.provider("a", rate=1.0, concurrency=1)
    for number in range(4):
        shop.entry(f"slow-{number}", "a")
    for number in range(20):
        shop.entry(f"fast-{number}", "b")
    shop.call("run", "--once")
    assert len(shop.entries("a")) == 4
    assert len(shop.entries("b")) == 20
    looks = shop.looks("a")
    assert len(looks) >= 12  # each is compared, pushed and verified
    # Pushes do not wait, and are paid for by the comparisons after them; stamps are cut to seconds.
    assert (looks[-1] - looks[0]).total_seconds() >= len(looks) - 1 - 2
    fast = max(path.stat().st_mtime for path in shop.account("b").glob("fast-*"))
    slow = max(path.stat().st_mtime for path in shop.account("a").glob("slow-*"))
    assert fast < slow - 5


def eventually(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.2)


def test_a_provider_leaves_with_its_assets(shop: Shop) -> None:
    shop.entry("x", "a")
    shop.entry("y", "b")
    shop.call("run", "--once")
    removed = shop.assets.pop("accounts/a")
    printed = shop.call("validate", code=1)
    assert "VAL001" in printed
    assert "`x` refers to `accounts/a`, which does not exist" in printed
    shop.assets["accounts/a"] = removed
    shop.assets["x"]["addons"]["lehr.Turndown"] = {"reason": "not used"}
    shop.call("run", "--once")
    assert shop.entries("a") == {}
    del shop.assets["accounts/a"], shop.assets["x"]
    shop.call("run", "--once")
    assert shop.entries("b") == {"y": "hello"}


@pytest.mark.parametrize(
    ("mistake", "code"),
    [("missing", "VAL001"), ("type", "VAL002"), ("plugin", "VAL073"), ("unserved", "VAL072")],
)
def test_mistakes_are_found_before_publication_with_their_place(shop: Shop, mistake: str, code: str) -> None:
    shop.entry("x", "a")
    if mistake == "missing":
        shop.entry("x", "c")
    elif mistake == "type":
        shop.assets["x"]["addons"][PROVIDED_BY]["provider"] = "z"
        shop.entry("z", None)
    elif mistake == "plugin":
        shop.provider("a", plugin="buckets")
    else:
        shop.plugins(types=["example.Other"])
    for command in (("run", "--once"), ("validate", "-o", "json")):
        printed = shop.call(*command, code=None)
        assert code in printed
        assert "all.yaml" in printed
    [problem] = _problems(shop.call("validate", "-o", "json", code=1))
    assert problem["code"] == code
    line = shop.workspace.joinpath("assets/all.yaml").read_text().splitlines()[problem["at"]["line"] - 1]
    assert '"provider":' in line
    assert shop.entries("a") == {}


def _problems(printed: str) -> list[dict[str, Any]]:
    found = json.loads(printed)
    listed: list[dict[str, Any]] = found["diagnostics"] if isinstance(found, dict) else found
    return [item for item in listed if item["severity"] == "error"]


def test_without_the_file_of_plugins_nobody_knows_who_serves_a_type(shop: Shop) -> None:
    shop.entry("x", "a")
    shop.provider("a", plugin="buckets")
    (shop.workspace / "plugins.yaml").unlink()
    done = subprocess.run(
        [sys.executable, "-m", "lehr", "validate"],
        cwd=shop.workspace,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "VAL07" not in done.stdout + done.stderr


def test_existing_entries_are_adopted_from_an_account(shop: Shop) -> None:
    (shop.account("b") / "old").write_text("here before")
    printed = shop.call("adopt", "example.Entry", "old", "--provider", "accounts/b", "-o", "json")
    [draft] = json.loads(printed[: printed.rindex("]") + 1])
    assert draft["payload"] == {"name": "old", "text": "here before"}
    assert draft["addons"] == {PROVIDED_BY: {"provider": "accounts/b"}}
    assert draft["obstacle"] == ""
    assert shop.call("adopt", "example.Entry", "old", "-o", "json").startswith("[]")
    missing = shop.call("adopt", "example.Entry", "old", "--provider", "accounts/c", code=1)
    assert "choose from: accounts/a, accounts/b" in missing
