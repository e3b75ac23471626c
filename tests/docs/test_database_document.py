"""The page about database schemas: every example is valid, every field is there, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from lehr.base import documents
from lehr.plugins.database.connection import PostgresAddress
from lehr.plugins.database.payload import DATABASE_SCHEMA, Column, DatabaseSchema, Table

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGE = (REFERENCE / "types-database.md").read_text()
FIELDS = PAGE.partition("\n## ")[0]


def test_every_example_is_valid() -> None:
    (example,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    loaded = documents.load("example.yaml", example.encode())
    assert not loaded.diagnostics
    schemas = []
    for document in loaded.documents:
        assert document.value["type"] == DATABASE_SCHEMA
        schemas.append(msgspec.convert(document.value["payload"], DatabaseSchema))
    assert {isinstance(schema.address, PostgresAddress) for schema in schemas} == {True, False}


def test_every_field_is_described_with_its_default_and_no_other() -> None:
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| (.*?) \|", FIELDS, re.MULTILINE))
    fields = {
        field.name: field
        for type in (DatabaseSchema, Table, Column)
        for field in msgspec.structs.fields(type)
    }
    assert rows.keys() == fields.keys()
    for name, field in fields.items():
        assert (rows[name] == "required") == field.required, name
        if isinstance(field.default, bool | str):
            assert msgspec.json.decode(rows[name].strip("`")) == field.default, name


def test_it_can_be_found() -> None:
    for page in ("types.md", "README.md"):
        assert "(types-database.md)" in (REFERENCE / page).read_text()
