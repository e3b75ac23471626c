"""The Shakespeare example's source of truth: what it declares, and that its parts fit together."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lehr import wiring
from lehr.base.blocking import Inline
from lehr.generate.engine.client import GenerationWorker
from lehr.model.asset import AssetId, Partition
from lehr.model.incarnation import AssetChange
from lehr.publish.predecessor import types_for
from lehr.sdk.generation import Generated
from lehr.sdk.validator import Limits
from lehr.validate import DeltaProposal, MappingPredecessor, validate
from tests.snapshots import MemorySnapshot

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "shakespeare"


def files() -> dict[str, str | bytes]:
    found = (path for path in sorted(EXAMPLE.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(EXAMPLE)): path.read_bytes()
        for path in found
        if "__pycache__" not in path.parts and "production" not in path.parts and ".lehr" not in path.parts
    }


def generate(source: dict[str, str | bytes]) -> Generated:
    async def main() -> Generated:
        worker = GenerationWorker("lehr.wiring:registry", Inline())
        try:
            return await worker.generate(MemorySnapshot(source))
        finally:
            await worker.close()

    return asyncio.run(main())


def problems(made: Generated) -> list[str]:
    registry = wiring.registry()
    registry.declare(types_for(made, None, Partition("test")))
    changes = [AssetChange(id, None, asset) for id, asset in made.assets.items()]
    proposal = DeltaProposal(Partition("test"), registry, Limits(), changes, MappingPredecessor({}, registry))
    return [str(item) for item in (*made.diagnostics, *validate(proposal))]


def test_it_generates_and_validates_without_a_word() -> None:
    made = generate(files())
    assert problems(made) == []
    assert len(made.assets) == 16


def test_every_asset_of_a_cluster_says_that_it_affects_it() -> None:
    made = generate(files())
    for id, asset in made.assets.items():
        if id.startswith("frontend/"):
            assert asset.document()["addons"]["lehr.AffectedClusters"] == {"clusters": [id.split("/")[1]]}


def test_a_version_whose_schema_nobody_declares_is_refused() -> None:
    source = files()
    manifest = source["frontend.yaml"]
    assert isinstance(manifest, bytes)
    found = problems(generate({**source, "frontend.yaml": manifest.replace(b"schema: 1", b"schema: 9")}))
    assert any("VAL005" in item for item in found)


def test_one_more_cluster_is_one_more_line() -> None:
    source = files()
    manifest = source["frontend.yaml"]
    assert isinstance(manifest, bytes)
    made = generate({**source, "frontend.yaml": manifest + b"  asia: {replicas: 2, ports: 8450}\n"})
    assert problems(made) == []
    over = made.assets[AssetId("frontend/global/balancer")].document()
    assert {item["asset"] for item in over["payload"]["backends"]["balancers"]} == {
        f"frontend/{cluster}/balancer" for cluster in ("eu", "us", "asia")
    }
