"""Sometimes, nothing happens in a random history: every held asset is then held by something."""

from __future__ import annotations

from lehr.testing.sim.scene import Scene
from lehr.testing.sim.standstill import complaints

_LONG_SECONDS = 30.0
"""After so long, whatever is wrong has been forgotten: no queue and no wait of a moment lasts so long."""


class Lull:
    """A lull, on a scene."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    async def pass_by(self) -> None:
        """Let nothing happen, with all faults as they are, and find assets that are stuck."""
        scene, process = self._scene, self._scene.process
        if scene.manners.jumps:
            return  # then the end of things cannot be seen from outside
        process.store.out_of_order = False
        scene.trace.note("phase", "nothing happens for a while")
        await scene.pass_time(5.0, 20.0)
        found = complaints(scene)
        if found:
            await process.pass_time(_LONG_SECONDS)
            scene.witness.violations += sorted(found & complaints(scene))
