"""Rules of diffs and edits, of catalogues that are given."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lehr.model.diff import Change
from lehr.plugins.database.catalogue import SERIAL, Catalogue, ColumnState, IndexState, TableState
from lehr.plugins.database.plan import (
    AddColumn,
    Conversion,
    CreateIndex,
    CreateSchema,
    CreateTable,
    DropColumn,
    DropDefault,
    DropIndex,
    DropTable,
    Edit,
    SchemaPlan,
    SetDefault,
    SetNullable,
    SetType,
    SetVersion,
    conversion,
    plan,
)
from lehr.plugins.database.statements import statements

ID = ColumnState("bigint", False, SERIAL)
TITLE = ColumnState("text", False)
BY_TITLE = IndexState(("title",))
PLAYS = TableState({"id": ID, "title": TITLE}, ("id",), {"by_title": BY_TITLE})


def catalogue(table: TableState | None = PLAYS, version: int = 1, *, drop: bool = False) -> Catalogue:
    tables = {} if table is None else {"plays": table}
    return Catalogue("public", version, tables, ("plays",) if drop else ())


def with_column(state: ColumnState, name: str = "author") -> TableState:
    return replace(PLAYS, columns={**PLAYS.columns, name: state})


def with_index(state: IndexState | None) -> TableState:
    return replace(PLAYS, indexes={} if state is None else {"by_title": state})


def altered(before: ColumnState, after: ColumnState) -> SchemaPlan:
    return plan(catalogue(with_column(after)), catalogue(with_column(before)))


def kinds(edits: tuple[Edit, ...]) -> list[type[Edit]]:
    return [type(edit) for edit in edits]


def paths(found: SchemaPlan) -> list[str]:
    return [change.path for change in found.diff.changes]


def test_what_is_as_intended_is_no_difference_and_tells_both_versions() -> None:
    found = plan(catalogue(version=2), catalogue(version=2))
    assert found.diff.empty
    assert found.transaction == found.builds == ()
    assert (found.diff.effects.version_from, found.diff.effects.version_to) == ("2", "2")


def test_from_nothing_all_is_made_in_one_transaction() -> None:
    found = plan(catalogue(), Catalogue(None, 0))
    assert kinds(found.transaction) == [CreateSchema, CreateTable, CreateIndex, SetVersion]
    assert not found.builds
    assert paths(found) == ["schema", "tables/plays", "version"]
    assert (found.diff.effects.version_from, found.diff.effects.version_to) == ("0", "1")
    assert not found.diff.effects.destructive


def test_a_new_column_and_the_version_come_together() -> None:
    author = ColumnState("text", False, "''")
    found = plan(catalogue(with_column(author), 2), catalogue())
    assert found.transaction == (AddColumn("plays", "author", author), SetVersion(2))
    assert found.diff.changes[0] == Change("tables/plays/columns/author", "text not null default ''", None)
    assert not found.diff.effects.destructive
    assert not found.diff.effects.disruptive


def test_a_column_that_is_not_declared_is_dropped_and_that_destroys() -> None:
    found = plan(catalogue(version=1), catalogue(with_column(ColumnState("text")), 2))
    assert found.transaction == (DropColumn("plays", "author"), SetVersion(1))
    assert found.diff.changes[0] == Change("tables/plays/columns/author", None, "text")
    assert found.diff.effects.destructive
    assert (found.diff.effects.version_from, found.diff.effects.version_to) == ("2", "1")


def test_a_table_is_dropped_only_when_that_is_asked_for() -> None:
    assert plan(catalogue(None), catalogue()).diff.empty
    found = plan(catalogue(None, drop=True), catalogue())
    assert found.transaction == (DropTable("plays"),)
    assert found.diff.effects.destructive
    assert plan(catalogue(None, drop=True), catalogue(None)).diff.empty


def test_an_index_over_a_table_that_is_there_is_built_beside_the_traffic_before_the_version() -> None:
    found = plan(catalogue(version=2), catalogue(with_index(None), 1))
    assert found.transaction == ()
    assert found.builds == (CreateIndex("plays", "by_title", BY_TITLE, True),)
    built = plan(catalogue(version=2), catalogue(version=1))
    assert built.transaction == (SetVersion(2),)


def test_a_version_is_lowered_before_an_index_is_built() -> None:
    found = plan(catalogue(version=1), catalogue(with_index(None), 2))
    assert found.transaction == (SetVersion(1),)
    assert len(found.builds) == 1


def test_what_an_interrupted_build_left_is_dropped_and_built_again() -> None:
    found = plan(catalogue(), catalogue(with_index(replace(BY_TITLE, valid=False))))
    assert kinds(found.transaction) == [DropIndex]
    assert kinds(found.builds) == [CreateIndex]
    assert found.diff.changes[0].observed.startswith(str(BY_TITLE))
    assert not found.diff.effects.destructive
    assert not found.diff.effects.disruptive


def test_an_index_of_other_columns_is_built_anew_and_missed_until_it_is() -> None:
    found = plan(catalogue(), catalogue(with_index(IndexState(("id",)))))
    assert kinds(found.transaction) == [DropIndex]
    assert found.diff.effects.disruptive
    assert not found.diff.effects.destructive


@pytest.mark.parametrize(
    ("index", "dropped"),
    [
        (BY_TITLE, True),
        (replace(BY_TITLE, special=True), False),
        (replace(BY_TITLE, unique=True, constraint=True), False),
    ],
)
def test_an_index_that_is_not_declared_is_dropped_if_intent_could_express_it(
    index: IndexState, dropped: bool
) -> None:
    found = plan(catalogue(with_index(None)), catalogue(with_index(index)))
    assert found.diff.effects.destructive == dropped
    assert kinds(found.transaction) == ([DropIndex] if dropped else [])


def test_the_index_of_a_constraint_can_be_the_one_that_is_declared() -> None:
    unique = IndexState(("title",), unique=True)
    assert plan(
        catalogue(with_index(unique)), catalogue(with_index(replace(unique, constraint=True)))
    ).diff.empty


def test_indexes_go_before_their_columns() -> None:
    before = replace(with_column(ColumnState("text")), indexes={"by_author": IndexState(("author",))})
    found = plan(catalogue(with_index(None)), catalogue(before))
    assert kinds(found.transaction) == [DropIndex, DropColumn]


def test_a_default_is_taken_off_while_the_type_changes() -> None:
    found = altered(ColumnState("text", True, "'1'"), ColumnState("integer", True, "'1'"))
    assert kinds(found.transaction) == [DropDefault, SetType, SetDefault]
    assert paths(found) == ["tables/plays/columns/author/type"]


def test_nulls_and_defaults_are_changed_in_place() -> None:
    found = altered(ColumnState("text", True, "'a'"), ColumnState("text", False))
    assert kinds(found.transaction) == [DropDefault, SetNullable]
    assert found.diff.effects.disruptive
    assert not found.diff.effects.destructive
    assert not altered(ColumnState("text", False), ColumnState("text", True)).diff.effects.disruptive


def test_a_number_that_the_database_gives_cannot_be_had_in_place() -> None:
    found = altered(ColumnState("bigint", False), ColumnState("bigint", False, SERIAL))
    assert found.obstacle is not None
    assert found.obstacle[0] == "tables/plays/columns/author/default"


def test_a_primary_key_is_not_changed() -> None:
    found = plan(catalogue(replace(PLAYS, primary_key=("title",))), catalogue())
    assert found.obstacle is not None
    assert found.transaction == ()
    assert found.diff.changes == (Change("tables/plays/primary_key", "title", "id"),)


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("character varying(20)", "character varying(30)", Conversion.FREE),
        ("character varying(20)", "text", Conversion.FREE),
        ("text", "character varying", Conversion.FREE),
        ("numeric(10,2)", "numeric(12,2)", Conversion.FREE),
        ("numeric(10,2)", "numeric", Conversion.FREE),
        ("smallint", "bigint", Conversion.REWRITE),
        ("integer", "numeric", Conversion.REWRITE),
        ("real", "double precision", Conversion.REWRITE),
        ("character varying(30)", "character varying(20)", Conversion.LOSSY),
        ("text", "character varying(20)", Conversion.LOSSY),
        ("bigint", "integer", Conversion.LOSSY),
        ("numeric(10,2)", "numeric(12,1)", Conversion.LOSSY),
        ("numeric", "numeric(10,2)", Conversion.LOSSY),
        ("integer", "numeric(4,2)", Conversion.LOSSY),
        ("text", "integer", Conversion.LOSSY),
        ("timestamp(3) with time zone", "timestamp with time zone", Conversion.LOSSY),
        ("integer[]", "bigint[]", Conversion.LOSSY),
    ],
)
def test_a_type_is_wider_only_if_every_value_is_kept(before: str, after: str, kind: Conversion) -> None:
    assert conversion(before, after) is kind
    effects = altered(ColumnState(before), ColumnState(after)).diff.effects
    assert effects.destructive == (kind is Conversion.LOSSY)
    assert effects.disruptive == (kind is not Conversion.FREE)


def test_a_diff_is_the_same_whatever_the_order_in_which_things_are_found() -> None:
    extra = {"a": ColumnState("text"), "b": ColumnState("text")}
    one = replace(PLAYS, columns={**PLAYS.columns, **extra})
    other = replace(PLAYS, columns={**dict(reversed(extra.items())), **PLAYS.columns})
    digests = {plan(catalogue(), catalogue(table)).diff.digest() for table in (one, other)}
    assert len(digests) == 1


def test_a_long_diff_is_short_and_still_exact() -> None:
    many = {f"c{number}": ColumnState("text") for number in range(500)}
    more = {**many, "c499": ColumnState("integer")}
    diffs = [
        plan(catalogue(), catalogue(replace(PLAYS, columns={**PLAYS.columns, **columns}))).diff
        for columns in (many, more)
    ]
    assert [len(diff.changes) for diff in diffs] == [101, 101]
    assert diffs[0].digest() != diffs[1].digest()


def test_names_are_quoted_whatever_they_are() -> None:
    name = 'x" CASCADE; DROP TABLE plays; --'
    (statement,) = statements(DropColumn("plays", name), 'pub"lic')
    assert statement == ('ALTER TABLE "pub""lic"."plays" DROP COLUMN "x"" CASCADE; DROP TABLE plays; --"')


def test_only_an_index_beside_the_traffic_is_built_concurrently_and_only_in_postgresql() -> None:
    edit = CreateIndex("plays", "by_title", IndexState(("title",), unique=True), True)
    assert statements(edit, "public") == [
        'CREATE UNIQUE INDEX CONCURRENTLY "by_title" ON "public"."plays" ("title")'
    ]
    for statement in (*statements(edit, None), *statements(replace(edit, concurrently=False), "public")):
        assert "CONCURRENTLY" not in statement
