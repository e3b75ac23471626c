"""Which files hold code and types is asked anew when `lehr.yaml` says something else of it."""

from __future__ import annotations

import asyncio

from lehr.base.clock import SystemClock
from lehr.sdk.generation import Generated
from lehr.testing.sim.generation import InlineGeneration
from lehr.testing.sim.source import files
from lehr.testing.world import registry

CODE = b"""
from lehr.sdk.generator import asset, for_each_file

@for_each_file("names/*.txt")
def things(file):
    yield asset("a", "lehr.Type", {"schema": {}})
"""
TYPE = b"""
import msgspec
from lehr.sdk.types import asset_type

@asset_type("shop.Team")
class Team(msgspec.Struct, frozen=True):
    mail: str
"""
DEFAULT = b"partition: test\n"
NO_TYPES = b"partition: test\ntypes: [elsewhere/*]\n"
ELSEWHERE = b"partition: test\ngenerators: [code/*.py]\n"


def built(*workspaces: bytes) -> Generated:
    """What comes of the last of several snapshots that differ in `lehr.yaml` alone."""
    contents = {
        "generators/a.py": CODE,
        "code/b.py": CODE,
        "names/x.txt": b"x",
        "types/team.py": TYPE,
        "types/helped.py": b"from team import Team\n",
    }

    async def main() -> Generated:
        generation = InlineGeneration(registry(), SystemClock())
        for text in workspaces:
            last = await generation.generate(files({**contents, "lehr.yaml": text}))
        return last

    return asyncio.run(main())


def test_other_patterns_for_generators_mean_other_generators() -> None:
    changed, clean = built(DEFAULT, ELSEWHERE), built(ELSEWHERE)
    assert [item.name for item in changed.declared] == ["code/b.py:things"]
    assert (changed.declared, changed.generators) == (clean.declared, clean.generators)
    assert {id: asset.digest for id, asset in changed.assets.items()} == {
        id: asset.digest for id, asset in clean.assets.items()
    }


def test_other_patterns_for_types_mean_other_types() -> None:
    changed, clean = built(DEFAULT, NO_TYPES), built(NO_TYPES)
    assert (changed.types, changed.generators) == (clean.types, clean.generators) == ((), clean.generators)
    assert built(NO_TYPES, DEFAULT).types == built(DEFAULT).types == ("shop.Team",)
