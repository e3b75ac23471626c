"""The intent that a call carries: the asset, and whatever else its plugin has asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lehr.base.digest import canonical
from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId
from lehr.model.evolution import FIRST
from lehr.model.secret import Secret, reference_in
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.wire import GarbageError
from lehr.sdk.plugin import Reader
from lehr.sdk.provider import ConfiguredProvider
from lehr.sdk.secrets import Hidden, Secrets, SecretValue

_MOST_ROUNDS = 100
_MOST_SECRET_DEPTH = 50


class _Body(msgspec.Struct):
    payload: msgspec.Raw
    addons: dict[str, msgspec.Raw] = {}


_body = msgspec.json.Decoder(_Body)


class CarriedIntent:
    """Collects the intent of one call, round by round.

    Everything is read through `read`, and so recorded, only when the plugin asks: what counts as read
    must not depend on what an earlier call happened to need.

    Args:
        understands: as `AssetPlugin.versions`.
    """

    def __init__(self, read: Reader, secrets: Secrets, understands: Mapping[str, int]) -> None:
        self.message = m.Intent()
        self._read = read
        self._secrets = secrets
        self._understands = understands
        self._rounds = 0
        self._payloads: list[bytes] = []
        self._values: list[SecretValue] = []
        self._asked: set[tuple[str, ...]] = set()

    @property
    def secrets(self) -> Sequence[SecretValue]:
        """The secrets that the plugin has been given."""
        return self._values

    @property
    def hidden(self) -> Hidden:
        """Hides the secrets that the plugin has been given."""
        return Hidden(self._values)

    def begin(self, id: AssetId) -> None:
        """Carry the asset that the call is about.

        Raises:
            StalledError: there is none.
        """
        self._add_asset(id)
        if not self.message.assets[0].exists:
            raise StalledError(
                f"there is no asset {id} in incarnation {self._read.incarnation}",
                code="PLG120",
                fix="correct the reference in intent",
            )

    def provide(self, provider: ConfiguredProvider) -> None:
        """Carry the provider whose configuration applies."""
        self._add_asset(provider.id)
        self.message.provider = provider.id

    async def add(self, need: m.Need) -> None:
        """Carry what the plugin has asked for.

        Raises:
            GarbageError: it asks for nothing new, or without end.
            StalledError: it asks for a secret that nothing in this call refers to, or that does not exist.
            WaitingError: an output is not known yet.
        """
        self._rounds += 1
        before = len(self._asked)
        for id in need.assets:
            self._add_asset(AssetId(id))
        for output in need.outputs:
            self._add_output(AssetId(output.id), output.path)
        for reference in need.secrets:
            await self._add_secret(reference)
        if len(self._asked) == before:
            raise GarbageError("it asks for nothing, or only for what it has")
        if self._rounds > _MOST_ROUNDS:
            raise GarbageError(f"it has asked for more intent {_MOST_ROUNDS} times")

    def _add_asset(self, id: AssetId) -> None:
        if self._is_new("asset", id):
            asset = self._read.asset(id)
            message = m.Asset(id=id) if asset is None else self._asset(asset)
            self.message.assets.append(message)

    def _asset(self, asset: Asset) -> m.Asset:
        body = _body.decode(asset.body)
        version, understood = asset.version(asset.type), self._understands.get(asset.type, FIRST)
        payload = bytes(body.payload)
        if version != understood:
            payload, version = canonical(self._read.payload(asset.id, dict)), understood
        self._payloads.append(payload)
        return m.Asset(
            id=asset.id,
            exists=True,
            type=asset.type,
            version=version,
            payload=payload,
            addons={name: bytes(value) for name, value in body.addons.items()},
        )

    def _add_output(self, id: AssetId, path: str) -> None:
        if self._is_new("output", id, path):
            value = canonical(self._read.output(id, path))
            self.message.outputs.append(m.Output(id=id, path=path, value=value))

    async def _add_secret(self, reference: str) -> None:
        if not self._is_new("secret", reference):
            return
        referred = self._referred(reference)
        if referred is None:
            raise StalledError(
                f"the plugin asks for the secret {reference}, which no asset that it has read refers to",
                code="PLG121",
                fix="refer to it in a field of the asset's payload, or fix the plugin",
            )
        value = await self._secrets.read(referred)
        self._values.append(value)
        self.message.secrets.append(m.SecretValue(reference=reference, value=value.content()))

    def _referred(self, reference: str) -> Secret | None:
        """The secret of this name that an asset of the call refers to."""
        for payload in self._payloads:
            for secret in _secrets_in(msgspec.json.decode(payload)):
                if secret.secret == reference:
                    return secret
        return None

    def _is_new(self, *key: str) -> bool:
        new = key not in self._asked
        self._asked.add(key)
        return new


def _secrets_in(value: Any, depth: int = 0) -> Iterator[Secret]:
    """The references to secrets in plain data."""
    if isinstance(value, dict):
        secret = reference_in(value)
        if secret is not None:
            yield secret
    if isinstance(value, dict | list) and depth < _MOST_SECRET_DEPTH:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _secrets_in(item, depth + 1)
