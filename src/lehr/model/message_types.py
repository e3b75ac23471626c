"""Protobuf messages as types: from descriptors to JSON schemas that need no protobuf to be read.

Values are the proto3 JSON form of their message. Of the ways to write a value that the form allows,
one is stored: field names in lowerCamelCase, 64-bit integers as text, enums by name, bytes in
base64 with padding, times in UTC, and every field without presence written out, with its default.

A schema describes the stored form. Its keyword `protobuf` names the kind of a value for
`lehr.generate.typing.messages`, so that another form of it can be converted to the stored one.

Reading descriptors needs the extra `protobuf`; nothing else does.
"""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lehr.model.schema import Form
from lehr.model.types import AssetType, Reference, Schema

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import Message

_KINDS = {
    1: "double",
    2: "float",
    3: "int64",
    4: "uint64",
    5: "int32",
    6: "uint64",
    7: "uint32",
    8: "bool",
    9: "string",
    12: "bytes",
    13: "uint32",
    15: "int32",
    16: "int64",
    17: "int32",
    18: "int64",
}
"""By number of the type in a descriptor: the form of values, however they are transmitted."""

_SCALARS: dict[str, dict[str, Any]] = {
    "bool": {"type": "boolean"},
    "string": {"type": "string"},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    "int32": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "uint32": {"type": "integer", "minimum": 0, "maximum": 2**32 - 1},
    "int64": {"type": "string", "pattern": r"^(0|-?[1-9][0-9]{0,18})$"},
    "uint64": {"type": "string", "pattern": "^(0|[1-9][0-9]{0,19})$"},
    "float": {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]},
    "double": {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]},
}
_ZEROES: dict[str, Any] = {
    "bool": False,
    "string": "",
    "bytes": "",
    "int32": 0,
    "uint32": 0,
    "int64": "0",
    "uint64": "0",
    "float": 0.0,
    "double": 0.0,
}
_WRAPPED = {
    "BoolValue": "bool",
    "StringValue": "string",
    "BytesValue": "bytes",
    "Int32Value": "int32",
    "UInt32Value": "uint32",
    "Int64Value": "int64",
    "UInt64Value": "uint64",
    "FloatValue": "float",
    "DoubleValue": "double",
}
_GOOGLE = "google.protobuf."
_OF_GOOGLE = re.compile(r"google/protobuf/[a-z_]+\.proto")
_WELL_KNOWN: dict[str, dict[str, Any]] = {
    "Timestamp": {"type": "string", "format": "date-time", "protobuf": "timestamp"},
    "Duration": {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]{1,9})?s$", "protobuf": "duration"},
    "FieldMask": {"type": "string", "protobuf": "string"},
    "Struct": {"type": "object", "protobuf": "struct"},
    "ListValue": {"type": "array", "protobuf": "list"},
    "Value": {"protobuf": "value"},
    "Any": {
        "type": "object",
        "required": ["@type"],
        "properties": {"@type": {"type": "string"}},
        "protobuf": "any",
    },
}
_WELL_KNOWN.update((name, {**_SCALARS[kind], "protobuf": kind}) for name, kind in _WRAPPED.items())


class DescriptorError(ValueError):
    """A description of messages is not valid."""


def message_type(
    message: type[Message],
    *,
    references: Mapping[str, Reference] | None = None,
    externals: Iterable[str] = (),
    secrets: Iterable[str] = (),
    enforced: bool = True,
) -> AssetType:
    """A type of assets that hold messages of an installed class; its name is the message's full name.

    For the entry point `lehr.types` of a package. Plugins read the payload as `dict`, and make a message
    of it with `google.protobuf.json_format.ParseDict`.

    Args:
        references, externals, secrets: by JSON pointer, as in type files.
        enforced: False for assets without production.
    """
    descriptor: Any = message.DESCRIPTOR
    schema = Schema(_schema(descriptor, {}), references or {}, "", externals, secrets, Form.PROTOBUF)
    return AssetType(descriptor.full_name, schema, enforced=enforced)


class Messages:
    """Messages out of descriptor sets."""

    def __init__(self) -> None:
        self._pool: Any = None
        self._names: list[str] = []
        self._meanings: dict[str, str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Full names of all messages, also of nested ones; but for Google's own."""
        return tuple(self._names)

    def add(self, content: bytes) -> None:
        """Also know the messages of a descriptor set.

        Raises:
            DescriptorError: it is not one, lacks what it imports, or contradicts another one; or
                the extra `protobuf` is not installed.
        """
        try:
            from google.protobuf import descriptor_pb2, descriptor_pool, message  # noqa: PLC0415 -- an extra
        except ImportError as error:
            raise DescriptorError("reading it needs protobuf: pip install 'lehr[protobuf]'") from error
        try:
            files = descriptor_pb2.FileDescriptorSet.FromString(content)
        except message.DecodeError as error:
            raise DescriptorError("it cannot be read") from error
        if not files.file:
            raise DescriptorError("it does not describe any file")
        self._pool = self._pool or descriptor_pool.DescriptorPool()
        for file in _importable(files.file):
            try:
                self._pool.AddSerializedFile(file.SerializeToString())
            except TypeError as error:
                raise DescriptorError(f"{file.name}: {' '.join(str(error).split())}") from error
            if not _OF_GOOGLE.fullmatch(file.name):  # those are parts of others, not types of assets
                self._names += [name for name in _message_names(file) if name not in self._names]
            self._meanings.update(_comments(file))

    def schema(self, name: str) -> dict[str, Any] | None:
        """JSON schema (draft 2020-12) of the stored form of a message; None if there is no such message."""
        if name not in self._names:
            return None
        return _schema(self._pool.FindMessageTypeByName(name), self._meanings)

    def meaning(self, name: str) -> str:
        """The comment before a message or field; empty where there is none."""
        return self._meanings.get(name, "")


def _importable(files: Iterable[FileDescriptorProto]) -> Iterator[FileDescriptorProto]:
    """All files, each after its imports; and those of Google that are imported and missing."""
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 -- an extra

    known = {file.name: file for file in files}
    done: set[str] = set()

    def after_imports(file: FileDescriptorProto) -> Iterator[FileDescriptorProto]:
        if file.name in done:
            return
        done.add(file.name)
        for name in file.dependency:
            if name not in known and _OF_GOOGLE.fullmatch(name):
                with contextlib.suppress(ImportError):
                    module = importlib.import_module(name.replace("/", ".").removesuffix(".proto") + "_pb2")
                    copy = descriptor_pb2.FileDescriptorProto()
                    module.DESCRIPTOR.CopyToProto(copy)
                    known[name] = copy
            if name in known:
                yield from after_imports(known[name])
        yield file

    for file in list(known.values()):
        yield from after_imports(file)


def _message_names(file: FileDescriptorProto) -> Iterator[str]:
    def within(prefix: str, messages: Iterable[Any]) -> Iterator[str]:
        for item in messages:
            if not item.options.map_entry:
                name = f"{prefix}.{item.name}" if prefix else item.name
                yield name
                yield from within(name, item.nested_type)

    return within(file.package, file.message_type)


def _comments(file: FileDescriptorProto) -> dict[str, str]:
    """Comments before messages and fields, by their full names, if the file has kept them."""
    names: dict[tuple[int, ...], str] = {}

    def walk(prefix: str, path: tuple[int, ...], messages: Iterable[Any], number: int) -> None:
        for index, item in enumerate(messages):
            here, name = (*path, number, index), f"{prefix}.{item.name}" if prefix else item.name
            names[here] = name
            names.update(((*here, 2, at), f"{name}.{field.name}") for at, field in enumerate(item.field))
            walk(name, here, item.nested_type, 3)

    walk(file.package, (), file.message_type, 4)
    return {
        names[tuple(place.path)]: _paragraphs(place.leading_comments or place.trailing_comments)
        for place in file.source_code_info.location
        if tuple(place.path) in names and (place.leading_comments or place.trailing_comments)
    }


def _paragraphs(comment: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", comment.strip()))


# --- from descriptors to schemas -------------------------------------------------------


def _schema(message: Descriptor, meanings: Mapping[str, str]) -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    root = _message(message, definitions, meanings)
    return {**root, "$defs": definitions}


def _message(message: Descriptor, definitions: dict[str, Any], meanings: Mapping[str, str]) -> dict[str, Any]:
    """A reference to the schema of a message, which is put into `definitions`."""
    name = message.full_name
    if name == f"{_GOOGLE}Empty":
        return {"type": "object", "additionalProperties": False, "protobuf": "message", "properties": {}}
    if name.startswith(_GOOGLE) and name.removeprefix(_GOOGLE) in _WELL_KNOWN:
        return dict(_WELL_KNOWN[name.removeprefix(_GOOGLE)])
    reference = {"$ref": f"#/$defs/{name}"}
    if name in definitions:
        return reference
    whole: dict[str, Any] = {"title": name, "type": "object", "protobuf": "message"}
    definitions[name] = whole
    if meanings.get(name):
        whole["description"] = meanings[name]
    whole["properties"] = {field.json_name: _field(field, definitions, meanings) for field in message.fields}
    whole["additionalProperties"] = False
    required = [field.json_name for field in message.fields if field.is_required]
    written = {field.name: field.json_name for field in message.fields if field.name != field.json_name}
    choices = {
        item.name: [field.json_name for field in item.fields]
        for item in message.oneofs
        if len(item.fields) > 1
    }
    more = {"required": required, "protobufNames": written, "protobufOneofs": choices}
    whole.update((key, value) for key, value in more.items() if value)
    return reference


def _field(
    field: FieldDescriptor, definitions: dict[str, Any], meanings: Mapping[str, str]
) -> dict[str, Any]:
    meaning, enum = meanings.get(field.full_name), field.enum_type
    more: dict[str, Any] = {"description": meaning} if meaning else {}
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        key, value = inner.fields_by_name["key"], inner.fields_by_name["value"]
        kind = {"type": "object", "protobuf": "map", "protobufKeys": _KINDS[key.type]}
        return {**kind, "additionalProperties": _value(value, definitions, meanings), "default": {}, **more}
    node = _value(field, definitions, meanings)
    if field.is_repeated:
        return {"type": "array", "protobuf": "repeated", "items": node, "default": [], **more}
    if not field.has_presence:
        more["default"] = _ZEROES[_KINDS[field.type]] if enum is None else enum.values[0].name
    return {**node, **more}


def _value(
    field: FieldDescriptor, definitions: dict[str, Any], meanings: Mapping[str, str]
) -> dict[str, Any]:
    """One value of the field, without regard to how often it occurs there."""
    if field.message_type is not None:
        return _message(field.message_type, definitions, meanings)
    if field.enum_type is not None:
        return _enum(field.enum_type, definitions)
    kind = _KINDS[field.type]
    return {**_SCALARS[kind], "protobuf": kind}


def _enum(enum: EnumDescriptor, definitions: dict[str, Any]) -> dict[str, Any]:
    if enum.full_name == f"{_GOOGLE}NullValue":
        return {"type": "null", "protobuf": "null"}
    numbers: dict[str, str] = {}
    for value in enum.values:
        numbers.setdefault(str(value.number), value.name)
    aliases = {
        value.name: numbers[str(value.number)]
        for value in enum.values
        if numbers[str(value.number)] != value.name
    }
    definitions[enum.full_name] = {
        "title": enum.full_name,
        "enum": list(numbers.values()),
        "protobuf": "enum",
        "protobufNames": {**numbers, **aliases},
    }
    return {"$ref": f"#/$defs/{enum.full_name}"}
