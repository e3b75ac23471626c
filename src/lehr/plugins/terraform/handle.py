"""The handle of a resource, which Lehr keeps between calls: no secret, and no resolved value. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from lehr.base.digest import digest, short
from lehr.model.handle import MOST_BYTES
from lehr.model.secret import Secret
from lehr.plugins.terraform.placeholders import names_in

_DIGEST = "#"
"""Begins a record that is a digest, and no value."""


class TerraformHandle(msgspec.Struct, frozen=True, omit_defaults=True):
    """A handle.

    Attributes:
        type: the resource type in the provider; another one in intent is another resource.
        id: attribute `id` of the resource; empty if its type has none.
        import_id: of intent, when the resource was found or made; empty for none.
        private: what the provider keeps about the resource.
        schema: version of the schema that all this belongs to.
        residue: short attributes that the provider has made, none of them sensitive: some cannot be read
            again, and some identify the resource.
        applied: by attribute or block, what was applied last as intent has it; see `records`.
        incarnation: that was applied last.
        tainted: id of the push whose creation of the resource ended with an error; empty for none.
    """

    type: str = ""
    id: str = ""
    import_id: str = ""
    private: bytes = b""
    schema: int = 0
    residue: dict[str, Any] = {}
    applied: dict[str, Any] = {}
    incarnation: int = 0
    tainted: str = ""

    @property
    def found(self) -> bool:
        """Whether it leads to a resource."""
        return bool(self.id or self.import_id or self.residue)

    def text(self) -> str:
        """As Lehr keeps it. One that would be too long loses what can be done without, step by step."""
        for shorter in (self, self._with_few_residues(), replace(self, residue={}, applied={})):
            text = msgspec.json.encode(shorter).decode()
            if len(text.encode()) <= MOST_BYTES:
                return text
        return msgspec.json.encode(replace(self, residue={}, applied={}, private=b"")).decode()

    def _with_few_residues(self) -> TerraformHandle:
        few = {name: value for name, value in self.residue.items() if name.endswith(("id", "arn", "name"))}
        return replace(self, residue=few)


NO_HANDLE = TerraformHandle()


def parse(text: str) -> TerraformHandle:
    """The handle that was kept as `text`; an empty one for text that is not a handle."""
    try:
        return msgspec.json.decode(text, type=TerraformHandle) if text else NO_HANDLE
    except msgspec.MsgspecError:
        return NO_HANDLE


def records(
    config: Mapping[str, Any], references: Mapping[str, Any], secrets: Mapping[str, Secret]
) -> dict[str, Any]:
    """For each attribute and block of a configuration, what identifies it.

    True, false and numbers represent themselves, anything else has a digest. For secrets this covers where
    they are kept, and in which version, and never their values.

    Args:
        config: with `${NAME}` where a value has to be filled in.
        references: the values of outputs, by name.
    """
    return {name: _record(value, references, secrets) for name, value in config.items() if value is not None}


def _record(value: Any, references: Mapping[str, Any], secrets: Mapping[str, Secret]) -> Any:
    if isinstance(value, bool | int | float):
        return value
    names = sorted(names_in(value))
    kept = {name: secrets[name] for name in names if name in secrets}
    known = {name: references[name] for name in names if name in references}
    places = {name: [secret.secret, secret.version, secret.digest] for name, secret in kept.items()}
    return _DIGEST + short(digest([value, known, places]))


def is_value(record: Any) -> bool:
    """Whether a record is the value itself."""
    return not isinstance(record, str)
