"""The calls of a configured Terraform provider, and the values that cross this boundary.

The plugin decides with these alone. `wire/` implements `Provider` over protocols 5 and 6; tests also use one
in memory.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

Value = Any
"""A value in Terraform's type system, as plain data.

None, bool, int, float, str, list (also of sets, tuples), dict (of maps, objects), `Number` for a number that
neither int nor float represents exactly, `UNKNOWN`, or, where the schema leaves the type open, `Typed`.
Objects have every attribute of their type, null where it is not set; blocks are lists or dicts, never null
(but for single blocks).
"""


class Unknown(enum.Enum):
    """A value that only the provider will know, after it has made the resource."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN


class Number(msgspec.Struct, frozen=True):
    """A number that neither int nor float represents exactly, as decimal digits."""

    digits: str


class Typed(msgspec.Struct, frozen=True):
    """A value of an attribute of any type, if its type is not the one that plain data has.

    Plain data are tuples and objects; this may also be a list, a set, a map, or null of a type.
    """

    type: Any
    value: Value


class Nesting(enum.StrEnum):
    """How a nested block, or a nested attribute, repeats."""

    SINGLE = "single"
    GROUP = "group"
    LIST = "list"
    SET = "set"
    MAP = "map"


class Attribute(msgspec.Struct, frozen=True, kw_only=True):
    """One attribute of a block or nested object.

    Attributes:
        type: cty's type as JSON data (`"string"`, `["list", "string"]`); None if `nested`.
        nested: attributes of a nested object (protocol 6), and how it repeats.
    """

    name: str
    type: Any = None
    nested: NestedObject | None = None
    required: bool = False
    optional: bool = False
    computed: bool = False
    sensitive: bool = False
    write_only: bool = False
    deprecated: bool = False
    description: str = ""


class NestedObject(msgspec.Struct, frozen=True):
    """The type of a nested attribute."""

    attributes: tuple[Attribute, ...]
    nesting: Nesting


class NestedBlock(msgspec.Struct, frozen=True):
    """A block within a block, and how often it may occur (0 for no limit)."""

    name: str
    block: Block
    nesting: Nesting
    least: int = 0
    most: int = 0


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Attributes and nested blocks, by the order of the provider's schema."""

    attributes: tuple[Attribute, ...] = ()
    blocks: tuple[NestedBlock, ...] = ()
    description: str = ""
    deprecated: bool = False


class Schema(msgspec.Struct, frozen=True):
    """The schema of a provider's configuration, of a resource type or of a data source."""

    version: int
    block: Block


class ProviderSchema(msgspec.Struct, frozen=True):
    """All schemas of a provider.

    Attributes:
        plan_destroy: whether deletions also have to be planned.
        need_not_be_asked: whether the provider works without having been asked for its schemas.
    """

    provider: Schema
    resources: Mapping[str, Schema]
    data_sources: Mapping[str, Schema]
    plan_destroy: bool = False
    need_not_be_asked: bool = False


Path = tuple[str | int, ...]
"""Where in a value: names of attributes and blocks, keys of maps, indexes of lists; never within a set."""


class Severity(enum.StrEnum):
    """Whether a diagnostic ends the call."""

    ERROR = "error"
    WARNING = "warning"


class Diagnostic(msgspec.Struct, frozen=True):
    """A message of the provider. May repeat what it was given: hide secrets before it is shown."""

    severity: Severity
    summary: str
    detail: str = ""
    path: Path = ()


class ProviderError(Exception):
    """A call was answered with errors. The provider is alive.

    Attributes:
        diagnostics: all of them, also warnings.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("; ".join(d.summary for d in diagnostics if d.severity is Severity.ERROR))
        self.diagnostics = tuple(diagnostics)


class ProviderGoneError(Exception):
    """A call has no answer: the provider died, hung, or answered nonsense. An apply may have happened."""


class State(msgspec.Struct, frozen=True):
    """A resource as its provider describes it; `value` is None where there is none."""

    value: Value
    private: bytes = b""


class Planned(msgspec.Struct, frozen=True):
    """The change that a provider would make to a resource.

    Attributes:
        value: the planned state, with `UNKNOWN` where only an apply knows; None for none.
        replaces: paths of attributes for whose change the provider has to replace the resource. Those that do
            not differ between prior and planned state do not count.
        legacy_types: the provider uses the old SDK, whose plans may contradict the configuration.
    """

    value: Value
    private: bytes
    replaces: tuple[Path, ...] = ()
    legacy_types: bool = False
    warnings: tuple[Diagnostic, ...] = ()


class Applied(msgspec.Struct, frozen=True):
    """The result of an apply. There may be a state *and* errors: the resource exists, and may be tainted."""

    state: State
    diagnostics: tuple[Diagnostic, ...] = ()


class Provider(Protocol):
    """A provider, configured once, in a process of its own.

    All methods raise `ProviderError` for errors that the provider answered, and `ProviderGoneError` if it
    does not answer.
    """

    @property
    def schema(self) -> ProviderSchema: ...

    async def validate_resource(self, type: str, config: Value) -> tuple[Diagnostic, ...]:
        """Problems of a configuration, errors and warnings; never raises `ProviderError` for them."""
        ...

    async def import_resource(self, type: str, id: str) -> State:
        """The state of an import id: often hardly more than the id, so read the resource next."""
        ...

    async def upgrade_state(self, type: str, version: int, json: bytes) -> Value:
        """A state that an older schema version wrote as JSON, in that of today."""
        ...

    async def read_resource(self, type: str, state: State) -> State:
        """The resource as it is; value None if it is gone."""
        ...

    async def plan(self, type: str, prior: State, proposed: Value, config: Value) -> Planned:
        """Plan a change; `proposed` and `config` are None for a deletion."""
        ...

    async def apply(self, type: str, prior: State, planned: Planned, config: Value) -> Applied:
        """Carry out a plan. Never cancelled: the answer may take an hour."""
        ...

    async def read_data_source(self, type: str, config: Value) -> Value:
        """A data source's values."""
        ...

    async def close(self) -> None:
        """End the process."""
        ...
