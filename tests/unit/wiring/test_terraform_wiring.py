"""Without the extra `lehr[terraform]`, assets of Terraform providers stall, and nothing is imported."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError
from lehr.testing.plugins import target_of
from lehr.wiring import Deployment
from lehr.wiring.terraform import terraform_plugin
from tests.terraform.assets import network, provider_asset, reader


def deployment(folder: Path) -> Deployment:
    return Deployment(location=str(folder), state=folder / "state", base=folder)


def test_without_the_extra_its_assets_stall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lehr.plugins.terraform.launch", None)
    monkeypatch.setenv("TOKEN", "hunter2-hunter2")

    async def run() -> None:
        plugin = terraform_plugin(deployment(tmp_path), SystemClock())
        asset = network(1)
        with pytest.raises(StalledError) as found:
            await plugin.diff(target_of(asset), reader(asset, provider_asset()))
        assert "pip install 'lehr[terraform]'" in found.value.fix
        await plugin.close()

    asyncio.run(run())


def test_the_start_imports_no_grpc(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from lehr.wiring import Deployment, plugins\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "found = plugins(Deployment(location=str(folder), state=folder / 'state', base=folder))\n"
        "assert any('lehr.TerraformResource' in plugin.types for plugin in found)\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('grpc', 'google')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
