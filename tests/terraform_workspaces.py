"""Small Terraform modules, and the commands that tests run them with."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.base.digest import digest_bytes
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Diff
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.model.workspace_file import WorkspaceFile
from lehr.plugins.terraform_workspace.payload import TERRAFORM_WORKSPACE, TYPES, TerraformWorkspace
from lehr.plugins.terraform_workspace.plugin import TerraformWorkspacePlugin
from lehr.testing.plugins import FixedSecrets

REGISTRY = Registry(TYPES)
PASSWORD = "hunter2-hunter2"
SECRETS = {"env:PASSWORD": PASSWORD}
FAKE = Path(__file__).with_name("fake_terraform.py")

MODULE: dict[str, Any] = {
    "variable": {"size": {"type": "string"}, "password": {"type": "string", "sensitive": True}},
    "resource": {
        "terraform_data": {
            "chair": {"input": {"legs": "4"}},
            "lamp": {"input": {"size": "${var.size}", "password": "${var.password}"}},
        }
    },
    "output": {
        "size": {"value": "${var.size}"},
        "lamp": {"value": "${terraform_data.lamp.id}"},
        "password": {"value": "${var.password}", "sensitive": True},
    },
}

real_terraform = pytest.mark.skipif(
    shutil.which("terraform") is None,
    reason="NOT TESTED AGAINST THE REAL COMMAND: `terraform` is not in PATH",
)


def fake(folder: Path) -> Path:
    """The fake command, as an executable file."""
    path = folder / "bin" / "terraform"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable} -IS\n{FAKE.read_text()}")
    path.chmod(0o755)
    return path


class Workspace:
    """A module in a folder of the machine, its state, and the command.

    Args:
        folder: for all of it.
        program: the command; by default the fake one.
    """

    def __init__(
        self, folder: Path, program: str | None = None, module: dict[str, Any] | None = None
    ) -> None:
        self.folder = folder
        self.root = folder / "module"
        self.root.mkdir(parents=True, exist_ok=True)
        self.state = self.root / "terraform.tfstate"
        self.control = folder / "control.json"
        self.program = program or str(fake(folder))
        self.lehr = folder / "lehr"
        self.write(module or MODULE)

    def write(self, module: dict[str, Any]) -> None:
        (self.root / "main.tf.json").write_text(json.dumps(module))

    def misbehave(self, **how: Any) -> None:
        self.control.write_text(json.dumps(how))

    def asset(self, size: str = "1", **fields: Any) -> Asset:
        payload = {
            "root": str(self.root),
            "program": self.program,
            "variables": {"size": size},
            "secrets": {"password": Secret("env:PASSWORD")},
            "environment": {"FAKE_TERRAFORM": str(self.control)},
            "lock_timeout_seconds": 5,
            **fields,
        }
        return make_asset(AssetId("shop/lamp"), TERRAFORM_WORKSPACE, TerraformWorkspace(**payload), {})

    def plugin(self, **options: Any) -> TerraformWorkspacePlugin:
        return TerraformWorkspacePlugin(
            self.folder,
            self.lehr,
            Threads("terraform", 4),
            SystemClock(),
            secrets=FixedSecrets(SECRETS),
            **{"graces": (2.0, 5.0), **options},
        )

    def observed(self) -> Any:
        """The state, without the number that counts its changes."""
        text = self.state.read_text() if self.state.exists() else ""
        return {name: item for name, item in json.loads(text or "{}").items() if name != "serial"}

    def disturb(self) -> None:
        """Change the lamp behind Terraform's back."""
        state = json.loads(self.state.read_text())
        [lamp] = [item for item in state["resources"] if item["name"] == "lamp"]
        lamp["instances"][0]["attributes"]["input"]["value"]["size"] = "1000"
        self.state.write_text(json.dumps(state))


def workspace_file(path: str, content: bytes) -> WorkspaceFile:
    """A file as an incarnation has it."""
    return WorkspaceFile(path, digest_bytes(content), len(content))


def paths(diff: Diff) -> list[str]:
    return [change.path for change in diff.changes]
