"""The methods of both versions of the protocol, and what messages have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from lehr.plugins.terraform.provider import Diagnostic, Path, Severity, Value
from lehr.plugins.terraform.values import json_codec, msgpack_codec
from lehr.plugins.terraform.values.cty_types import CtyType
from lehr.plugins.terraform.wire import messages

CAPABILITIES = messages.ClientCapabilities(write_only_attributes_allowed=True)
"""Deferral is not among them: a provider that cannot plan yet has to report an error."""


class Call(NamedTuple):
    """One method.

    Attributes:
        name5, name6: in versions 5 and 6.
        answers: the message that it is answered with, likewise.
    """

    name5: str
    name6: str
    answer5: Any
    answer6: Any

    def path(self, version: int) -> str:
        """Its name in gRPC."""
        return f"/tfplugin{version}.Provider/{self.name5 if version == 5 else self.name6}"

    def answer(self, version: int) -> Any:
        """The type of its answer."""
        return self.answer5 if version == 5 else self.answer6


def _call(message: Any, name5: str = "", name6: str = "") -> Call:
    name = name6 or message.DESCRIPTOR.name
    return Call(name5 or name, name, message.Response, message.Response)


SCHEMA = Call(
    "GetSchema",
    "GetProviderSchema",
    messages.GetProviderSchema.Response5,
    messages.GetProviderSchema.Response6,
)
VALIDATE_PROVIDER = _call(messages.ValidateProviderConfig, "PrepareProviderConfig")
CONFIGURE = _call(messages.ConfigureProvider, "Configure")
VALIDATE_RESOURCE = _call(messages.ValidateConfig, "ValidateResourceTypeConfig", "ValidateResourceConfig")
VALIDATE_DATA = _call(messages.ValidateConfig, "ValidateDataSourceConfig", "ValidateDataResourceConfig")
UPGRADE = _call(messages.UpgradeResourceState)
READ = _call(messages.ReadResource)
PLAN = _call(messages.PlanResourceChange)
APPLY = _call(messages.ApplyResourceChange)
IMPORT = _call(messages.ImportResourceState)
READ_DATA = _call(messages.ReadDataSource)
STOP = _call(messages.StopProvider, "Stop")


def packed(value: Value, type: CtyType) -> messages.DynamicValue:
    """`value` as it is sent."""
    return messages.DynamicValue(msgpack=msgpack_codec.encode(value, type))


def value_of(message: messages.DynamicValue, type: CtyType) -> Value:
    """The value in `message`. A message without a value is not null, which would mean that nothing is there.

    Raises:
        DamagedValueError: it has none of `type`.
    """
    if message.msgpack:
        return msgpack_codec.decode(message.msgpack, type)
    return json_codec.from_json(message.json, type)


def diagnostics_of(found: Iterable[messages.Diagnostic]) -> tuple[Diagnostic, ...]:
    """Those of an answer. A severity that is not known is an error."""
    return tuple(
        Diagnostic(
            Severity.WARNING if one.severity == 2 else Severity.ERROR,
            one.summary,
            one.detail,
            path_of(one.attribute),
        )
        for one in found
    )


def path_of(message: messages.AttributePath) -> Path:
    """Where in a value. A step that is not understood (into a set) ends it."""
    path: list[str | int] = []
    for step in message.steps:
        selector = step.WhichOneof("selector")
        if selector is None:
            break
        path.append(getattr(step, selector))
    return tuple(path)


def path_message(path: Path) -> messages.AttributePath:
    """`path` as a message; each text is a name."""
    steps = [
        messages.AttributePath.Step(element_key_int=step)
        if isinstance(step, int)
        else messages.AttributePath.Step(attribute_name=step)
        for step in path
    ]
    return messages.AttributePath(steps=steps)
