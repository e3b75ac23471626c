"""Rules of what people may write of a database's schema."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lehr.model.asset import AssetId, make_asset
from lehr.model.types import Registry
from lehr.plugins.database.connection import PostgresAddress, SqliteAddress, parse
from lehr.plugins.database.payload import DATABASE_SCHEMA, TYPES, Column, DatabaseSchema


def schema(**fields: Any) -> DatabaseSchema:
    document = {"connection": "postgresql:///plays", "version": 1, **fields}
    return msgspec.convert(document, DatabaseSchema)


def table(**fields: Any) -> dict[str, Any]:
    return {"plays": {"columns": {"id": {"type": "integer"}}, **fields}}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("sqlite:data/plays.sqlite", SqliteAddress("data/plays.sqlite")),
        ("postgresql:///plays", PostgresAddress(database="plays")),
        (
            "postgresql://will@db.example:5433/plays?sslmode=verify-full&passfile=secrets/pass",
            PostgresAddress(
                database="plays",
                host="db.example",
                port="5433",
                user="will",
                parameters={"sslmode": "verify-full", "passfile": "secrets/pass"},
            ),
        ),
        (
            "postgresql:///plays?host=run/postgres&port=5433",
            PostgresAddress(database="plays", host="run/postgres", port="5433"),
        ),
        ("postgresql://[::1]:5433/plays", PostgresAddress(database="plays", host="::1", port="5433")),
        ("postgresql://%2Frun%2Fpg/plays", PostgresAddress(database="plays", host="/run/pg")),
    ],
)
def test_a_connection_names_a_database(text: str, address: PostgresAddress | SqliteAddress) -> None:
    assert parse(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plays",
        "mysql://localhost/plays",
        "sqlite:",
        "sqlite::memory:",
        "sqlite:data/",
        "postgresql://localhost",
        "postgresql://localhost/",
        "postgresql://will:hunter2@localhost/plays",
        "postgresql://will:@localhost/plays",
        "postgresql:///plays?password=hunter2",
        "postgresql:///plays?options=-csearch_path%3Dx",
        "postgresql:///plays?service=other",
        "postgresql://a,b/plays",
        "postgresql://localhost:0/plays",
        "postgresql://localhost:port/plays",
        "postgresql://localhost:hunter2/plays",
        "postgresql://[::1/plays",
        "postgresql:///plays?port=99999",
        "postgresql:///plays%00",
        "postgresql:///plays/more",
    ],
)
def test_a_connection_that_names_none_or_holds_a_password_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="`connection`") as caught:
        parse(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "type",
    [
        "text",
        "varchar(20)",
        "character varying (20)",
        "numeric(10, 2)",
        "timestamp(3) with time zone",
        "double precision",
        "text[]",
        "integer[][]",
        "geometry(Point,4326)",
        "bigserial",
    ],
)
def test_a_type_is_words_numbers_and_brackets(type: str) -> None:
    assert Column(type).type == type


INJECTIONS = [
    "text; DROP TABLE plays",
    "text); DROP TABLE plays; --",
    "text -- comment",
    "text/**/",
    "text DEFAULT now()",
    "text primary key",
    "integer REFERENCES plays",
    "integer generated always as (1) stored",
    "text COLLATE nocase",
    "text 'x'",
    'text "x"',
    "text\nnot null",
    "numeric(10,2",
    "numeric((10))",
    "text\x00",
    "(text)",
    "",
]


@pytest.mark.parametrize("type", INJECTIONS)
def test_a_type_that_could_go_on_as_something_else_is_refused(type: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        schema(tables={"plays": {"columns": {"id": {"type": type}}}})


@pytest.mark.parametrize(
    ("default", "expression"),
    [
        (0, "0"),
        (-1.5, "-1.5"),
        (True, "true"),
        ("'none'", "'none'"),
        ("'it''s'", "'it''s'"),
        ("now()", "now()"),
        ("CURRENT_DATE", "CURRENT_DATE"),
        ("gen_random_uuid()", "gen_random_uuid()"),
        ("null", None),
        (None, None),
    ],
)
def test_a_default_is_a_literal_or_one_of_a_few_functions(default: Any, expression: str | None) -> None:
    assert Column("text", default=default).expression == expression


@pytest.mark.parametrize(
    "default",
    [
        "none",
        "'none",
        "'a' || 'b'",
        "'a'; DROP TABLE plays",
        "'a\\' OR 1'",
        "'a'')",
        "(SELECT password FROM users)",
        "pg_sleep(10)",
        "nextval('s')",
        "now(); --",
        "1)",
        "'a\nb'",
        float("nan"),
        float("inf"),
    ],
)
def test_any_other_default_is_refused(default: Any) -> None:
    with pytest.raises(ValueError, match="default"):
        Column("text", default=default)


def test_a_default_that_is_the_moment_of_making_is_refused() -> None:
    with pytest.raises(ValueError, match=r"now\(\)"):
        Column("timestamptz", default="'now'")


@pytest.mark.parametrize(
    "name", ["", "a b", 'a"', "a;b", "a\n", "1a", "é", "a" * 64, "a.b", "a\x00"], ids=repr
)
def test_a_name_is_letters_digits_and_underscores(name: str) -> None:
    column = {"type": "text"}
    for fields in (
        {"tables": {name: {"columns": {"id": column}}}},
        {"tables": {"plays": {"columns": {name: column}}}},
        {"tables": table(indexes={name: {"columns": ["id"]}})},
        {"schema": name},
    ):
        with pytest.raises(msgspec.ValidationError):
            schema(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"tables": {"plays": {}}},
        {"tables": table(absent=True)},
        {"tables": {"plays": {"absent": True, "primary_key": ["id"]}}},
        {"tables": table(primary_key=["title"])},
        {"tables": table(primary_key=["id", "id"])},
        {"tables": table(indexes={"by_title": {"columns": ["title"]}})},
        {"tables": table(indexes={"by_title": {"columns": []}})},
        {"tables": table(indexes={"Plays": {"columns": ["id"]}})},
        {"tables": {"plays": {"columns": {"a": {"type": "text"}, "A": {"type": "text"}}}}},
        {"tables": {"lehr_schema": {"columns": {"id": {"type": "text"}}}}},
        {"tables": {"pg_class": {"columns": {"id": {"type": "text"}}}}},
        {"tables": {"plays": {"columns": {"id": {"type": "serial", "default": 1}}}}},
        {"connection": "sqlite:plays.sqlite", "schema": "other"},
        {"version": -1},
    ],
)
def test_what_contradicts_itself_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        schema(**fields)


def test_one_schema_of_one_database_belongs_to_one_asset() -> None:
    def claims(**fields: Any) -> tuple[str, ...]:
        return Registry(TYPES).claims(make_asset(AssetId("db"), DATABASE_SCHEMA, schema(**fields), {}))

    one = claims(connection="postgresql://will@localhost/plays")
    assert one == claims(connection="postgresql://ben@localhost:5432/plays?sslmode=disable")
    assert one != claims(connection="postgresql://will@localhost/plays", schema="other")
    assert one != claims(connection="sqlite:plays")
