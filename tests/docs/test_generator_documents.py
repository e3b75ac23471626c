"""The pages about generation: every code is described, and the how-to's generator runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path

from lehr.base.blocking import Inline
from lehr.generate.engine.client import GenerationWorker
from lehr.model.asset import AssetId
from lehr.sdk.generation import Generated
from tests.snapshots import MemorySnapshot

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = (ROOT / "docs" / "reference" / "diagnostics.md").read_text()
TEMPLATES = (ROOT / "docs" / "how-to" / "use-templates.md").read_text()
HOW_TO = (ROOT / "docs" / "how-to" / "write-a-generator.md").read_text()


def used_codes() -> set[str]:
    """Codes of diagnostics; those of errors are on a generated page."""
    sources = (path.read_text() for path in (ROOT / "src" / "lehr").rglob("*.py"))
    return {code for text in sources for code in re.findall(r'"([A-Z]{3}0\d\d)"', text)}


def test_every_code_in_use_is_described_and_no_other() -> None:
    described = re.findall(r"^\| `([A-Z]{3}\d{3})` \|", REFERENCE, re.MULTILINE)
    assert sorted(described) == sorted(used_codes())


def generate(files: Mapping[str, str]) -> Generated:
    async def main() -> Generated:
        worker = GenerationWorker("lehr.wiring:registry", Inline())
        try:
            return await worker.generate(MemorySnapshot(files))
        finally:
            await worker.close()

    return asyncio.run(main())


def test_the_generator_of_the_how_to_runs() -> None:
    blocks = re.findall(r"^```\w+\n# (\S+)\n(.*?)^```", HOW_TO, re.MULTILINE | re.DOTALL)
    made = generate({"lehr.yaml": "partition: test\n", **dict(blocks)})
    assert made.diagnostics == ()
    assert set(made.assets) == {"web/config", "web/process"}
    process = made.assets[AssetId("web/process")].document()
    assert process["addons"]["lehr.Owner"]["team"] == "web"


def test_the_template_of_the_how_to_is_rendered() -> None:
    blocks = dict(re.findall(r"^```\w+\n# (\S+)\n(.*?)^```", TEMPLATES, re.MULTILINE | re.DOTALL))
    made = generate({"lehr.yaml": "partition: test\n", **blocks})
    assert made.diagnostics == ()
    assert (
        made.assets[AssetId("nginx/shop")].document()["payload"]["content"]
        == """\
server {
    listen 80;
    server_name shop.example www.shop.example;
    location / {
        proxy_pass http://127.0.0.1:8500;
    }
    location /api {
        proxy_pass http://127.0.0.1:8510;
    }
}
"""
    )
    nameless = {**blocks, "vhosts/shop.yaml": "name: shop\nproxy: {}\n"}
    (problem,) = generate({"lehr.yaml": "partition: test\n", **nameless}).diagnostics
    shown = f"error[{problem.code}]: {problem.what} --> {problem.at} = why: {problem.why}"
    assert shown in re.sub(r"\s+", " ", TEMPLATES)
