"""Types that are declared as data."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lehr.base.pointers import parts_of
from lehr.model.references import Mention, Named, Reference, external, found_at, mention
from lehr.model.secret import mappings_of


class Form(enum.StrEnum):
    """How values of a declared type are written."""

    JSON = "json"
    PROTOBUF = "protobuf"


class Schema:
    """A payload type that is declared as data, by a JSON schema.

    Attributes:
        document: the JSON schema (draft 2020-12).
        references: which fields name other assets, by JSON pointer; `*` matches every key or index.
        externals: which fields name something outside of intent, in the same way: text, a URI; or a
            mapping as `External` is.
        secrets: which fields hold references to secrets, in the same way.
        description: what assets of the type represent.
        form: `json` where the schema is complete; `protobuf` where values are the JSON form of a
            message, which may be written in several ways and is stored in one.
    """

    def __init__(
        self,
        document: Mapping[str, Any],
        references: Mapping[str, Reference],
        description: str = "",
        externals: Iterable[str] = (),
        secrets: Iterable[str] = (),
        form: Form = Form.JSON,
    ) -> None:
        self.form = form
        self.document = document
        self.description = description
        self.references = references
        self.externals = tuple(externals)
        self.secrets = tuple(secrets)
        self._paths = [(parts_of(pattern), mark) for pattern, mark in references.items()]

    def mentions(self, value: Any, path: str) -> Iterator[Mention]:
        """The references in plain data of this type at `path` of its asset's document."""
        for parts, mark in self._paths:
            for place, item in found_at(value, path, parts):
                if not self._is_left_out(item, parts):
                    yield from mention(item, place, mark)

    def outside(self, value: Any, path: str) -> Iterator[Named]:
        """Names of things outside of intent in plain data of this type at `path`."""
        for pattern in self.externals:
            parts = parts_of(pattern)
            for place, item in found_at(value, path, parts):
                if item is None or self._is_left_out(item, parts):
                    continue
                named = item if isinstance(item, dict) else {"uri": item}
                uri = named.get("uri")  # anything else might not be fixed
                yield from external({**named, "uri": uri if isinstance(uri, str) else ""}, place)

    def _is_left_out(self, item: Any, parts: tuple[str, ...]) -> bool:
        """Whether it is a field of a message that may be empty because it was not set."""
        return item == "" and self.form is Form.PROTOBUF and parts[-1] not in ("*", "#")

    def sensitive(self, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        """The values in plain data of this type, at `path`, that have to be references to secrets."""
        for pattern in self.secrets:
            yield from (found for found in found_at(value, path, parts_of(pattern)) if found[1] is not None)

    def secret_data(self, value: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The references to secrets in plain data of this type at `path`."""
        for place, item in self.sensitive(value, path):
            yield from mappings_of(item, place)
