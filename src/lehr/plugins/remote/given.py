"""The intent of a call, as a plugin in Python reads it: a `Reader` and `Secrets` over a message."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

import msgspec

from lehr.base.errors import NeedError, StalledError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.plugins.remote import messages as m
from lehr.sdk.secrets import SecretValue

T = TypeVar("T")


class GivenReader:
    """A `lehr.sdk.plugin.Reader` over the intent of one call.

    Attributes:
        need: everything that was asked for and not given. Unless it is empty, the call has to be repeated.
    """

    def __init__(self, intent: m.Intent, incarnation: int, registry: Registry) -> None:
        self.need = m.Need()
        self._incarnation = incarnation
        self._registry = registry
        self._assets = {asset.id: asset for asset in intent.assets}
        self._outputs = {(output.id, output.path): output.value for output in intent.outputs}
        self._secrets = {secret.reference: secret.value for secret in intent.secrets}

    @property
    def incarnation(self) -> int:
        return self._incarnation

    @property
    def complete(self) -> bool:
        """Whether everything that was asked for was given."""
        return not (self.need.assets or self.need.outputs or self.need.secrets)

    def asset(self, id: AssetId) -> Asset | None:
        found = self._assets.get(id)
        if found is None:
            self.need.assets.append(id)
            raise NeedError(f"the asset {id} is needed", code="PLG142")
        if not found.exists:
            return None
        return make_asset(
            id,
            found.type,
            msgspec.json.decode(found.payload),
            {name: msgspec.json.decode(value) for name, value in found.addons.items()},
            versions={found.type: found.version} if found.version > 1 else None,
        )

    def payload(self, id: AssetId, kind: type[T]) -> T:
        asset = self._present(id)
        if kind is dict:
            data: Any = msgspec.json.decode(self._assets[id].payload)
            return data  # type: ignore[no-any-return]
        try:
            return self._registry.payload(asset, kind)
        except TypeError as error:
            raise StalledError(str(error), code="PLG140", fix="correct the reference in intent") from error

    def addon(self, id: AssetId, name: str, kind: type[T]) -> T | None:
        self._present(id)
        raw = self._assets[id].addons.get(name)
        return None if raw is None else msgspec.json.decode(raw, type=kind)

    def output(self, id: AssetId, path: str) -> Any:
        if (id, path) not in self._outputs:
            self.need.outputs.append(m.OutputKey(id=id, path=path))
            raise NeedError(f"the output `{path}` of {id} is needed", code="PLG143")
        return msgspec.json.decode(self._outputs[id, path])

    def secret(self, reference: str) -> SecretValue:
        """The value of a secret that an asset of this call refers to.

        Raises:
            NeedError: it was not given.
        """
        if reference not in self._secrets:
            self.need.secrets.append(reference)
            raise NeedError("a secret is needed", code="PLG144")
        return SecretValue(self._secrets[reference])

    def _present(self, id: AssetId) -> Asset:
        asset = self.asset(id)
        if asset is None:
            raise StalledError(
                f"there is no asset {id} in incarnation {self._incarnation}",
                code="PLG141",
                fix="correct the reference in intent",
            )
        return asset


_current: ContextVar[GivenReader] = ContextVar("current")


@contextlib.contextmanager
def reading(reader: GivenReader) -> Iterator[None]:
    """Within the block, and in the tasks that it starts, `GivenSecrets` are those of `reader`."""
    token = _current.set(reader)
    try:
        yield
    finally:
        _current.reset(token)


class GivenSecrets:
    """The secrets of the call under way: `lehr.sdk.secrets.Secrets` for plugins in Python."""

    async def read(self, secret: Secret) -> SecretValue:
        return _current.get().secret(secret.secret)
