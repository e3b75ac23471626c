"""Starts and configures providers over their own protocol. Needs the extra `lehr[terraform]`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.errors import LehrError, StalledError
from lehr.base.log import Log
from lehr.plugins.plugin_process import PluginProcesses, Program
from lehr.plugins.terraform.errors import Meaning, described, error_of_look, errors, meaning
from lehr.plugins.terraform.kept_schemas import KeptSchemas
from lehr.plugins.terraform.payload import TerraformProvider
from lehr.plugins.terraform.placeholders import filled
from lehr.plugins.terraform.provider import Provider, ProviderError, ProviderSchema, Value
from lehr.plugins.terraform.values.configured import configured
from lehr.plugins.terraform.values.secret_paths import secret_texts
from lehr.plugins.terraform.wire.client import WireProvider
from lehr.plugins.terraform.wire.starting import Providers
from lehr.sdk.secrets import NOTHING_HIDDEN, Hidden, SecretValue


class SchemasInThreads:
    """Kept schemas, read and written without blocking the event loop."""

    def __init__(self, kept: KeptSchemas, blocking: Blocking) -> None:
        self._kept = kept
        self._blocking = blocking

    async def known(self, sha256: str) -> ProviderSchema | None:
        return await self._blocking.run(self._kept.known, sha256)

    async def keep(self, sha256: str, version: int, answer: bytes) -> None:
        await self._blocking.run(self._kept.keep, sha256, version, answer)


class Launcher:
    """Starts providers, each in a process of its own.

    Args:
        base: the folder that relative paths of programs start from.
        blocking: reads programs for their digest, and keeps schemas.
        kept: gets the schemas of each provider, so that later processes need not be asked.
    """

    def __init__(self, base: Path, blocking: Blocking, clock: Clock, kept: KeptSchemas | None = None) -> None:
        schemas = None if kept is None else SchemasInThreads(kept, blocking)
        self._base = base
        self._providers = Providers(PluginProcesses(blocking, clock), schemas)
        self._log = Log()

    async def start(self, payload: TerraformProvider, secrets: Mapping[str, SecretValue]) -> Provider:
        """A provider, running and configured.

        Raises:
            LehrError: it cannot be started, or refuses its configuration.
            ProviderGoneError: it has ended.
        """
        hidden = Hidden(secrets.values())
        provider = await self._started(payload, hidden)
        try:
            await self._configure(provider, payload, secrets, hidden)
        except BaseException:
            await provider.close()
            raise
        return provider

    async def schema(self, payload: TerraformProvider) -> ProviderSchema:
        """The schemas of a provider, which is started for that and not configured.

        Raises:
            LehrError: it cannot be started.
        """
        provider = await self._started(payload, NOTHING_HIDDEN)
        try:
            return provider.schema
        finally:
            await provider.close()

    async def _started(self, payload: TerraformProvider, hidden: Hidden) -> WireProvider:
        return await self._providers.start(
            Program(
                (str(self._base / payload.path),), environment=payload.environment, sha256=payload.sha256
            ),
            log=lambda line: self._log.info("a provider prints", provider=payload.path, line=line),
            hidden=hidden,
        )

    async def _configure(
        self,
        provider: WireProvider,
        payload: TerraformProvider,
        secrets: Mapping[str, SecretValue],
        hidden: Hidden,
    ) -> None:
        what = f"the provider {payload.path} refuses its configuration"
        config = self._config(provider, payload, secrets, hidden, what)
        held = secret_texts(provider.schema.provider.block, config)
        hidden = Hidden([*secrets.values(), *(SecretValue(text.encode()) for text in held)])
        try:
            warnings = await provider.configure(config)
        except ProviderError as error:
            raise _error(what, error, hidden) from None
        if warnings:
            text = described(warnings, hidden)
            self._log.warning("a provider warns", provider=payload.path, line=text)

    def _config(
        self,
        provider: WireProvider,
        payload: TerraformProvider,
        secrets: Mapping[str, SecretValue],
        hidden: Hidden,
        what: str,
    ) -> Value:
        written = filled(payload.config, {name: value.text() for name, value in secrets.items()})
        config, problems = configured(provider.schema.provider.block, written)
        if wrong := errors(problems):
            raise StalledError(what, code="TER126", why=described(wrong, hidden), fix="correct its `config`")
        return config


def _error(what: str, error: ProviderError, hidden: Hidden) -> LehrError:
    if meaning(error.diagnostics) is Meaning.REFUSED:
        return StalledError(
            what,
            code="TER127",
            why=described(errors(error.diagnostics), hidden),
            fix="correct its credentials",
        )
    return error_of_look(what, error, hidden, known_to_pass=False)
