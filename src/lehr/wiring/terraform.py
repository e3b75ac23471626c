"""The plugin of Terraform providers. Their protocol needs the extra `lehr[terraform]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from lehr.base.blocking import Blocking
    from lehr.base.clock import Clock
    from lehr.base.diagnostics import Diagnostic
    from lehr.plugins.terraform.kept_schemas import KeptSchemas
    from lehr.plugins.terraform.launch import Launcher
    from lehr.plugins.terraform.payload import TerraformProvider
    from lehr.plugins.terraform.plugin import TerraformPlugin
    from lehr.plugins.terraform.provider import Provider
    from lehr.sdk.secrets import SecretValue
    from lehr.sdk.validator import Proposal, Validator
    from lehr.wiring.deployment import Deployment


def validators(state: Path) -> tuple[Validator, ...]:
    """Validators of plugins: the check of Terraform configurations against schemas that are known here.

    Args:
        state: the folder in which a running Lehr keeps schemas.
    """
    schemas = _schemas(state)

    def terraform(proposal: Proposal) -> Iterator[Diagnostic]:
        from lehr.plugins.terraform.schema_check import does_not_fit

        return does_not_fit(proposal, schemas.known)

    return (terraform,)


def _schemas(state: Path) -> KeptSchemas:
    from lehr.plugins.terraform.kept_schemas import KeptSchemas

    return KeptSchemas(state / "terraform-schemas")


def terraform_plugin(deployment: Deployment, clock: Clock) -> TerraformPlugin:
    """The plugin. Without the extra its assets stall, and explain how to install it."""
    from lehr.base.blocking import Threads
    from lehr.plugins.terraform.plugin import TerraformPlugin
    from lehr.validate.secrets import secrets_in
    from lehr.wiring.installed import protected, secrets

    blocking = Threads("terraform", 4)
    return TerraformPlugin(
        clock,
        _Start(deployment, blocking, clock).start,
        blocking,
        base=deployment.base,
        secrets=secrets(deployment, "terraform"),
        protected=protected(deployment),
        secrets_in=secrets_in,
    )


class _Start:
    """Starts providers. The client of their protocol is imported with the first one."""

    def __init__(self, deployment: Deployment, blocking: Blocking, clock: Clock) -> None:
        self._deployment = deployment
        self._blocking = blocking
        self._clock = clock
        self._launcher: Launcher | None = None

    async def start(self, payload: TerraformProvider, secrets: Mapping[str, SecretValue]) -> Provider:
        if self._launcher is None:
            self._launcher = self._imported()
        return await self._launcher.start(payload, secrets)

    def _imported(self) -> Launcher:
        from lehr.base.errors import StalledError

        try:
            from lehr.plugins.terraform.launch import Launcher
        except ImportError as error:
            raise StalledError(
                "Terraform providers cannot be started",
                code="TER128",
                why=f"the extra `lehr[terraform]` is not installed: {error}",
                fix="pip install 'lehr[terraform]', then start Lehr again",
            ) from error
        kept = _schemas(self._deployment.state)
        return Launcher(self._deployment.base, self._blocking, self._clock, kept)
