"""`examples/firmware`: switches are updated one after the other, and a killed Lehr starts nothing twice."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import yaml

from lehr.plugins.workflow.addresses import EngineAddress
from tests import firmware
from tests.firmware import EXAMPLE, Switch, until

UPDATE = ["drain", "flash", "reboot", "undrain"]
ENGINES = {"dbos": firmware.dbos, "temporal": firmware.temporal}


class Site:
    """A copy of the example with its programs."""

    def __init__(self, folder: Path, switches: dict[str, Switch]) -> None:
        self.workspace = folder / "workspace"
        self.switches = switches
        self.log = folder / "lehr.log"
        names = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LEHR_"))}
        self.environment = names | {
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "states"),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        for role in ("AUTHOR", "COMMITTER"):
            self.environment |= {f"GIT_{role}_NAME": "you", f"GIT_{role}_EMAIL": "you@localhost"}

    def prepare(self, engine: EngineAddress) -> None:
        """Copy the example, and write the addresses of this test into it."""
        shutil.copytree(EXAMPLE, self.workspace)
        declared = yaml.safe_load((self.workspace / "switches.yaml").read_text())
        kept = msgspec.to_builtins(engine)
        declared["engine"] = {name: value for name, value in kept.items() if value is not None}
        declared["switches"] = {name: {"address": item.address} for name, item in self.switches.items()}
        (self.workspace / "switches.yaml").write_text(yaml.safe_dump(declared))
        self.run("git", "init", "--quiet")
        self.commit()

    def commit(self, **changed: str) -> None:
        path = self.workspace / "switches.yaml"
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changed))
        self.run("git", "add", ".")
        self.run("git", "commit", "--quiet", "--message", "Switches", "--allow-empty")

    def run(self, *command: str, check: bool = True) -> str:
        done = subprocess.run(
            command, cwd=self.workspace, env=self.environment, capture_output=True, text=True, timeout=120
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def lehr(self, *arguments: str, check: bool = True) -> str:
        return self.run(sys.executable, "-m", "lehr", *arguments, check=check)

    @contextlib.contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """`lehr run`, killed on exit."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "lehr", "run"],
                cwd=self.workspace,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait(10)

    def versions(self) -> set[str]:
        return {str(switch.shown()["version"]) for switch in self.switches.values()}


@pytest.fixture(params=ENGINES)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with (
        ENGINES[request.param](tmp_path) as engine,
        firmware.switch(tmp_path, "leaf-1", reboot_seconds=0.2) as first,
        firmware.switch(tmp_path, "leaf-2", reboot_seconds=0.2) as second,
    ):
        site = Site(tmp_path, {"leaf-1": first, "leaf-2": second})
        site.prepare(engine)
        yield site


def test_switches_are_updated_and_broken_firmware_stops_at_the_first(site: Site) -> None:
    first, second = site.switches.values()
    with site.running():
        until(lambda: site.versions() == {"4.2.0"}, "both switches are updated")
        site.lehr("wait", "--timeout", "60s")
        assert first.actions() == second.actions() == UPDATE
        site.commit(firmware="4.3.0")
        until(lambda: site.versions() == {"4.3.0"}, "both switches have the newer firmware")
        site.lehr("wait", "--timeout", "60s")
        site.commit(firmware="4.4.0-broken")
        until(lambda: "Stalled" in site.lehr("get", "assets", check=False), "the first switch stalls")
        why = site.lehr("why", "switches/leaf-1", check=False)
        assert "UpdateFirmware failed" in why
        assert site.versions() == {"4.3.0"}
        assert second.actions() == UPDATE * 2, "the second switch is not touched"
        assert all(switch.shown()["serving"] for switch in site.switches.values())


@pytest.mark.parametrize("after", [None, "drain", "flash", "reboot", "undrain"])
def test_a_killed_lehr_finds_its_run_and_starts_no_other(site: Site, after: str | None) -> None:
    first = site.switches["leaf-1"]
    with site.running():
        until(lambda: after in (None, *first.actions()), f"the run has come to {after}")
    with site.running():
        until(lambda: site.versions() == {"4.2.0"}, "both switches are updated")
        site.lehr("wait", "--timeout", "60s")
    assert {name: switch.actions() for name, switch in site.switches.items()} == {
        "leaf-1": UPDATE,
        "leaf-2": UPDATE,
    }
