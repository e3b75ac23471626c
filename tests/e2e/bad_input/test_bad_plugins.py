"""Given somebody else's package, when it misbehaves, then it is named, and all others go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.bad_input.workspace import Workspace, until

TYPES = """
import asyncio
import msgspec
from lehr.model.diff import Change, Diff
from lehr.model.operation import DONE, Outcome
from lehr.model.types import AssetType
from lehr.sdk.plugin import AssetPlugin, Traits


class Thing(msgspec.Struct, frozen=True):
    how: str


def types():
    return [AssetType("acme.Thing", Thing)]
"""
PLUGIN = """
class ThingPlugin(AssetPlugin):
    types = ("acme.Thing",)
    traits = Traits(diff_timeout=0.5, push_timeout=0.5)

    async def diff(self, target, read):
        match read.payload(target.id, Thing).how:
            case "diff raises":
                raise RuntimeError("out of cheese")
            case "diff hangs":
                await asyncio.sleep(3600)
            case "diff exits":
                raise SystemExit(3)
            case "diff lies":
                return {"changes": []}
            case "diff is garbage":
                return Diff((Change("thing", object(), None),))
        return Diff((Change("thing", "here", None),))

    async def push(self, target, read, push):
        match read.payload(target.id, Thing).how:
            case "push raises":
                raise RuntimeError("out of cheese")
            case "push hangs":
                await asyncio.sleep(3600)
            case "push lies":
                return "all is well"
            case "push is garbage":
                return Outcome("marvellous")
        return DONE

    async def status(self, operation):
        return "who knows"

    async def watch(self):
        raise RuntimeError("nothing to see here")
        yield


def make(deployment):
    return ThingPlugin()
"""
ENTRIES = "[lehr.types]\nacme = acme_things:types\n\n[lehr.plugins]\nacme = acme_things:make\n"
NAME = "plugin acme_things.ThingPlugin"
HOW = {
    "diff raises": ("retried", f"{NAME} failed: RuntimeError: out of cheese", "fix or update the plugin"),
    "diff hangs": (
        "retried",
        f"{NAME} took longer than 0.5 s to look at production",
        "Lehr retries automatically",
    ),
    "diff exits": ("retried", f"{NAME} failed: SystemExit: 3", "fix or update the plugin"),
    "diff lies": ("retried", f"{NAME} returned a dict instead of a diff", "fix or update the plugin"),
    "diff is garbage": (
        "retried",
        f"{NAME} returned a diff that is not valid: TypeError",
        "fix or update",
    ),
    "push raises": (
        "is not known",
        f"{NAME} failed: RuntimeError: out of cheese",
        "changes nothing before",
    ),
    "push hangs": ("is not known", f"{NAME} did not finish within 0.5 s", "changes nothing before"),
    "push lies": (
        "is not known",
        f"{NAME} returned a str instead of an outcome",
        "changes nothing before",
    ),
    "push is garbage": ("is not known", f"{NAME} returned an outcome that is not valid", "'marvellous'"),
}


def install(workspace: Workspace, code: str, entries: str = ENTRIES) -> None:
    """Do what pip does."""
    site = workspace.site()
    about = site / "acme_things-1.0.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    (site / "acme_things.py").write_text(code)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-things\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(entries)


def test_a_plugin_that_misbehaves_is_named_and_delays_no_other(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    install(workspace, TYPES + PLUGIN)
    for how in HOW:
        workspace.declare(how.replace(" ", "-"), "acme.Thing", {"how": how})
    motd = workspace.declare_file("motd", "one\n")
    workspace.commit()
    with workspace.run("--poll", "1s") as running:
        until("others go on", motd.exists, running.said)
        workspace.declare_file("motd", "two\n")
        workspace.commit()
        until("others go on", lambda: motd.read_text() == "two\n", running.said)
        for how, words in HOW.items():
            workspace.stands(how.replace(" ", "-"), *words)
        assert len(workspace.operations("push-raises")) == 1  # not touched again before it is known
        running.says("watch failed", "nothing to see here")
        assert running.end() == 0


def test_a_plugin_that_cannot_be_loaded_is_left_out_and_its_assets_say_so(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    install(workspace, TYPES + "\n\ndef make(deployment):\n    raise RuntimeError('no licence')\n")
    workspace.declare("thing", "acme.Thing", {"how": "well"})
    motd = workspace.declare_file("motd", "one\n")
    workspace.commit()
    with workspace.run() as running:
        running.says("a plugin is left out", "acme-things 1.0", "acme (acme_things:make)", "no licence")
        until("others go on", motd.exists, running.said)
        workspace.stands("thing", "stalled", "no plugin serves type acme.Thing", "install a plugin")


SECOND = TYPES.replace('"acme.Thing"', '"lehr.File"')
CHECK = ENTRIES + "\n[lehr.checks]\nacme = acme_things:check\n"


@pytest.mark.parametrize(
    ("code", "entries", "why"),
    [
        ("import no_such_module\n", ENTRIES, "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit(3)\n", ENTRIES, "SystemExit: 3"),
        ("def types():\n    return 3\n", ENTRIES, "TypeError: 'int' object is not iterable"),
        (SECOND, ENTRIES, "ValueError: type lehr.File is registered twice"),
        (
            TYPES + PLUGIN + "\n\ndef check():\n    return None\n",
            CHECK,
            "returned a NoneType, not a CheckPlugin",
        ),
    ],
    ids=["import", "exit", "garbage", "taken", "check"],
)
def test_types_and_checks_that_cannot_be_loaded_stop_the_start_and_name_the_package(
    code: str, entries: str, why: str, tmp_path: Path
) -> None:
    """Without types nobody knows what intent means; without a check, pushes would go that it holds back."""
    workspace = Workspace(tmp_path)
    workspace.declare_file("motd", "one\n")
    workspace.commit()
    install(workspace, code, entries)
    done = workspace.once()
    done.failed("the installed package acme-things 1.0 cannot be used", why, "pip uninstall acme-things")
    assert list(workspace.production.iterdir()) == []


def test_two_plugins_for_one_type_are_one_too_many(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    install(workspace, TYPES + PLUGIN.replace('types = ("acme.Thing",)', 'types = ("lehr.File",)'))
    motd = workspace.declare_file("motd", "one\n")
    workspace.commit()
    done = workspace.once()
    assert done.code == 0
    assert "another plugin serves type lehr.File already" in done.err
    assert motd.read_text() == "one\n"
    assert json.loads(workspace.lehr("get", "assets", "-o", "json").out)[0]["status"] == "Converged"
