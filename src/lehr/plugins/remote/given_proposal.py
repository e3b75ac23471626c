"""What a validator knows, as a validator in Python reads it: a `Proposal` over a message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lehr.base.errors import NeedError, StalledError
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.declared import TypeDeclaration, schema_of
from lehr.model.evolution import FIRST, Evolution
from lehr.model.incarnation import AssetChange
from lehr.model.types import AssetType, Mention, Registry
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.check_wire import asset_of
from lehr.plugins.remote.validator_wire import GivenPlace, change_of, mentions_of
from lehr.sdk.validator import Limits

_ANY = schema_of(TypeDeclaration({}))
"""Of payloads whose type the plugin does not know as a class."""


class GivenProposal:
    """A `lehr.sdk.validator.Proposal` over one call: a part of the changes, and what was asked for.

    Attributes:
        need: everything that was asked for and not given. Unless it is empty, the call has to be repeated.
        registry: the types that the plugin knows as classes, and all others of the call as plain data.
    """

    def __init__(self, request: m.ValidateRequest, registry: Registry) -> None:
        self.need = m.ValidateNeed()
        self.partition = Partition(request.partition)
        self._changes = [change_of(change) for change in request.changes]
        self._size_before = request.size_before
        self._assets = {change.id: change.after for change in self._changes}
        for message in request.assets:
            self._assets[AssetId(message.id)] = asset_of(message) if message.exists else None
        self._mentions = {AssetId(item.id): mentions_of(item) for item in request.referrers}
        self.registry = registry.copy()
        self.registry.declare(_types(self._all()))

    @property
    def complete(self) -> bool:
        """Whether everything that was asked for was given."""
        return not (self.need.assets or self.need.referrers)

    @property
    def limits(self) -> Limits:
        """Not known in another process."""
        raise StalledError(
            "the limits of a workspace are not part of the protocol",
            code="PLG162",
            fix="configure the validator by its environment, or by assets",
        )

    def changes(self) -> Iterable[AssetChange]:
        return self._changes

    def asset(self, id: AssetId) -> Asset | None:
        if id not in self._assets:
            self.need.assets.append(id)
            raise NeedError(f"the asset {id} is needed", code="PLG163")
        return self._assets[id]

    def type_of(self, id: AssetId) -> str | None:
        asset = self.asset(id)
        return None if asset is None else asset.type

    def mentioned_by(self, id: AssetId) -> Iterable[tuple[Asset, Mention]]:
        if id not in self._mentions:
            self.need.referrers.append(id)
            raise NeedError(f"the referrers of {id} are needed", code="PLG164")
        return self._mentions[id]

    def place(self, asset: Asset, pointer: str = "") -> GivenPlace:
        return GivenPlace(asset.id, asset=asset.id, pointer=pointer)

    def size_before(self) -> int:
        return self._size_before

    def prefetch(self, assets: Iterable[AssetId] = (), referrers: Iterable[AssetId] = ()) -> None:
        """Ask for all of them at once.

        Raises:
            NeedError: some are missing.
        """
        self.need.assets.extend(id for id in dict.fromkeys(assets) if id not in self._assets)
        self.need.referrers.extend(id for id in dict.fromkeys(referrers) if id not in self._mentions)
        if not self.complete:
            raise NeedError("assets or referrers are needed", code="PLG165")

    def _all(self) -> Iterator[Asset]:
        yield from (asset for asset in self._assets.values() if asset is not None)
        yield from (change.before for change in self._changes if change.before is not None)
        yield from (asset for mentions in self._mentions.values() for asset, _mention in mentions)


def _types(assets: Iterable[Asset]) -> list[AssetType]:
    """Types for any payload, in the newest version that an asset has."""
    versions: dict[str, int] = {}
    for asset in assets:
        versions[asset.type] = max(asset.version(asset.type), versions.get(asset.type, FIRST))
    return [AssetType(name, _ANY, evolution=Evolution(version)) for name, version in versions.items()]
