"""Looks at a resource or data source next to intent: finds it, and has the provider plan."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from lehr.base.errors import StalledError
from lehr.model.diff import NO_DIFF, Change, Diff, Goal, Target
from lehr.plugins.terraform.changes import Compared
from lehr.plugins.terraform.compare import SecretsIn, compared, outputs_of
from lehr.plugins.terraform.errors import described, error_of_look, errors
from lehr.plugins.terraform.finding import Observed, Sought, find
from lehr.plugins.terraform.handle import TerraformHandle
from lehr.plugins.terraform.intent import (
    Intended,
    configuration,
    require_places_for_secrets,
    schema_of,
    tag_of,
)
from lehr.plugins.terraform.memory import Memory
from lehr.plugins.terraform.payload import TerraformResource
from lehr.plugins.terraform.provider import Block, Provider, ProviderError, Value
from lehr.plugins.terraform.values.proposed import proposed_new


class Looks:
    """Looks. They never write.

    Args:
        visible_seconds: how long APIs may hide a resource that was just created.
        secrets_in: finds what looks like a secret, and must not become an output.
    """

    def __init__(self, memory: Memory, visible_seconds: float, secrets_in: SecretsIn) -> None:
        self._memory = memory
        self._visible_seconds = visible_seconds
        self._secrets_in = secrets_in

    async def data_source(self, provider: Provider, intended: Intended, goal: Goal) -> Diff:
        """An empty diff with the values of a data source as outputs."""
        if goal is Goal.ABSENT:
            return replace(NO_DIFF, outputs={})
        type = intended.payload.type
        schemas = provider.schema.data_sources
        block = schema_of(schemas, type, intended.provider.path, "data source").block
        try:
            value = await provider.read_data_source(type, configuration(block, intended))
        except ProviderError as error:
            raise error_of_look(f"the data source {type} cannot be read", error, intended.hidden) from None
        return replace(NO_DIFF, outputs=self._outputs(block, intended, value))

    async def resource(
        self, provider: Provider, intended: Intended, target: Target, handle: TerraformHandle, lost: str
    ) -> Compared:
        """A resource next to intent.

        Args:
            handle: leads to it, if it is known.
            lost: id of a push that may have created it; empty for none.

        Raises:
            LehrError: it cannot be found or planned.
        """
        payload = intended.payload
        assert isinstance(payload, TerraformResource)  # as is every other type of asset
        schemas = provider.schema.resources
        schema = schema_of(schemas, payload.type, intended.provider.path, "resource type")
        block, absent = schema.block, target.goal is Goal.ABSENT
        if absent:
            config = _lenient_configuration(block, intended)
        else:
            require_places_for_secrets(block, payload)
            config = configuration(block, intended)
            await _require_valid(provider, intended, config)
        sought = Sought(
            payload,
            intended,
            schema,
            config,
            handle,
            lost,
            target.incarnation,
            self._visible_seconds,
            self._memory.searched_seconds(lost) if lost else 0.0,
            self._memory.made_seconds(target.key),
        )
        observed = await find(provider, sought)
        if not absent:
            return await self._planned(provider, sought, observed)
        value = observed.state.value
        diff = NO_DIFF if value is None else Diff((Change("resource", None, "present"),))
        outputs = self._outputs(block, intended, value)
        return Compared(sought, observed, None, replace(diff, outputs=outputs))

    async def _planned(self, provider: Provider, sought: Sought, observed: Observed) -> Compared:
        block, intended, resource = sought.schema.block, sought.intended, sought.resource
        value, attribute = observed.state.value, intended.provider.operation_tag
        if tag := tag_of(value, attribute):
            sought = sought._replace(config=configuration(block, intended, (attribute, tag)))
        try:
            proposed = proposed_new(block, value, sought.config)
            planned = await provider.plan(resource.type, observed.state, proposed, sought.config)
        except ProviderError as error:
            what = f"the change of a {resource.type} cannot be planned"
            hidden = intended.secrecy(block, value, sought.config).hidden
            raise error_of_look(what, error, hidden, known_to_pass=False) from None
        tainted = observed.handle.tainted
        reason = "created with an error" if tainted and tainted != resource.verified_push else ""
        secrecy = intended.secrecy(block, value, sought.config, planned.value)
        diff = compared(block, value, planned, secrecy, tainted=reason)
        return Compared(
            sought, observed, planned, replace(diff, outputs=self._outputs(block, intended, value))
        )

    def _outputs(self, block: Block, intended: Intended, value: Value) -> dict[str, Any]:
        return outputs_of(block, value, intended.secrecy(block, value), self._secrets_in)


def _lenient_configuration(block: Block, intended: Intended) -> Value:
    """The configuration of what should go; None if it does not fit the type."""
    try:
        return configuration(block, intended)
    except StalledError:
        return None


async def _require_valid(provider: Provider, intended: Intended, config: Value) -> None:
    type = intended.payload.type
    found = errors(await provider.validate_resource(type, config))
    if found:
        raise StalledError(
            f"the provider refuses the configuration of a {type}",
            code="TER124",
            why=described(found, intended.hidden),
            fix="correct `config`",
        )
