"""A Strategist in the simulation: writes and withdraws releases on request."""

from __future__ import annotations

from lehr.base.digest import Digest
from lehr.model.asset import AssetId
from lehr.model.content_key import content_key
from lehr.model.release import Release, ReleaseBasis, ReleaseKind
from lehr.model.writes import Refused, WriteReleases
from lehr.testing.sim.harness import Harness


class Strategist:
    """Makes releases with numbers of its own, and writes them through the control plane that enforces."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._count = 0

    def release(self, id: str, target: int | None, kind: ReleaseKind) -> Release:
        """A release of an asset to the content of an incarnation; None lets it follow intent again."""
        self._count += 1
        assets = {} if target is None else self._harness.witness.assets(target)
        asset = assets.get(id)
        reads = () if asset is None else asset.document()["payload"].get("reads", ())
        others = [(name, assets.get(name)) for name in reads]
        return Release(
            id=f"release-{self._count:04}",
            partition=self._harness.partition,
            asset=AssetId(id),
            target=target,
            kind=kind,
            basis=ReleaseBasis(self._governance),
            at=self._harness.clock.now(),
            content_key=Digest("") if asset is None else content_key(asset, others),
            reads=tuple(map(AssetId, reads)),
        )

    async def write(
        self,
        releases: tuple[Release, ...] = (),
        withdrawn: tuple[str, ...] = (),
        *,
        notify: bool = True,
        late: int = 0,
    ) -> Refused | None:
        """Write these down.

        Args:
            notify: the Enforcer is notified; else it finds out.
            late: how many versions ago the Strategist has looked.

        Returns:
            Why they were refused; None if they were not.

        Raises:
            Crash: the control plane died of it.
            LehrError: the store cannot be written.
        """
        process, version = self._harness.process, self._harness.witness.releases.version
        now = self._harness.clock.now()
        write = WriteReleases(
            self._harness.partition, max(0, version - late), self._governance, now, releases, withdrawn
        )
        said = [f"{item.asset}@{item.target or 'newest'} ({item.kind})" for item in releases]
        self._harness.trace.note("strategist", f"releases {said}; withdraws {list(withdrawn)}")

        async def work() -> Refused | None:
            [answer] = await process.plane.committer.ask(write)
            if notify:
                await process.enforcer.releases_changed()
            return answer  # type: ignore[no-any-return]

        refused = await process.run(work())
        if refused is not None:
            self._harness.trace.note("strategist", f"refused: {refused.message}")
        return refused

    @property
    def _governance(self) -> Digest:
        newest = self._harness.witness.newest
        return Digest("") if newest is None else newest.header.governance
