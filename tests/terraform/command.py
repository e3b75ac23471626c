"""The `terraform` command as a peer to compare with."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.terraform import fake

COMMAND = shutil.which("terraform")

needs_terraform = pytest.mark.skipif(COMMAND is None, reason="the terraform command is not installed")


class Terraform:
    """A folder with a configuration, its state, and one provider.

    Args:
        source: the provider's name.
        binaries: folder with its program.
        provider: its configuration.
        variables: further variables for it.
    """

    def __init__(
        self,
        folder: Path,
        source: str,
        binaries: Path,
        provider: Mapping[str, Any],
        variables: Mapping[str, str],
    ) -> None:
        self.folder = folder
        self._source = source
        self._provider = provider
        overrides = f'dev_overrides {{ "{source}" = "{binaries}" }}'
        (folder / "terraform.rc").write_text(f"provider_installation {{\n  {overrides}\n  direct {{}}\n}}\n")
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TF_CLI_CONFIG_FILE": str(folder / "terraform.rc"),
            "CHECKPOINT_DISABLE": "1",
            **variables,
        }

    def write(self, resources: Mapping[str, Mapping[str, Any]]) -> None:
        """Declare resources, by type and name."""
        name = self._source.rpartition("/")[2]
        main = {
            "terraform": {"required_providers": {name: {"source": self._source}}},
            "provider": {name: self._provider},
            "resource": resources,
        }
        (self.folder / "main.tf.json").write_text(json.dumps(main))

    def run(self, *arguments: str) -> str:
        """Run the command, and return its output."""
        assert COMMAND is not None
        result = subprocess.run(
            [COMMAND, *arguments],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert result.returncode == 0, (result.stderr or result.stdout)[:3000]
        return result.stdout

    def apply(self) -> None:
        """Apply what is declared."""
        self.run("apply", "-auto-approve", "-input=false", "-no-color")

    def planned(self) -> dict[str, Any]:
        """Changes of a plan, by address: actions, before, after."""
        self.run("plan", "-input=false", "-no-color", "-out=plan")
        shown = json.loads(self.run("show", "-json", "plan"))
        return {one["address"]: one["change"] for one in shown.get("resource_changes", [])}


class TerraformWithFake(Terraform):
    """With the fake provider, and a record of what it was asked."""

    def __init__(self, folder: Path, protocol: int) -> None:
        self.record = folder / "record"
        fake.binary(folder / "override")
        super().__init__(
            folder,
            "example/fake",
            folder / "override",
            {"store": str(folder / "store")},
            {
                "TF_DISABLE_PLUGIN_TLS": "1",
                "FAKE_PROTOCOL": str(protocol),
                "FAKE_RECORD": str(self.record),
            },
        )

    def requests(self, call: str) -> list[dict[str, Any]]:
        """The recorded requests of one call, since the last time. Values are MessagePack."""
        lines = self.record.read_text().splitlines() if self.record.exists() else []
        self.record.unlink(missing_ok=True)
        found = [one for one in map(json.loads, lines) if one["call"] == call]
        return [{name: _decoded(value) for name, value in one.items()} for one in found]


def _decoded(value: Any) -> Any:
    return base64.b64decode(value["msgpack"]) if isinstance(value, dict) else value
