"""The database, written out by hand: its server, the tables in it, and the rows that they start with."""

from collections.abc import Iterator

from lehr.sdk.generator import SourceFile, Yielded, asset, for_each_file

EVERYWHERE = {"lehr.AffectedClusters": {"clusters": ["global"]}}


@for_each_file("schema.yaml")
def database(file: SourceFile) -> Iterator[Yielded]:
    about = file.yaml()
    port, name, tables = about["port"], about["database"], about["tables"]
    connection = f"postgresql://plays@127.0.0.1:{port}/{name}"
    # Whoever is on this machine reaches it without a password: enough for an example.
    program = ["python3", "production/bin/postgres.py", "--data", "production/postgres"]
    server = {
        "command": [*program, "--listen", "127.0.0.1", "--port", "{port}"],
        "ports": [{"name": "sql", "base": port}],
        "restart_on": ["programs/postgres.py"],
        "group": "database",
    }
    schema = {
        "connection": connection,
        "create_database": True,
        "version": about["version"],
        "tables": tables,
    }
    columns = ",".join(tables["lines"]["columns"])
    rows = ["python3", "production/bin/lines.py"]
    lines = {
        "check": [*rows, "check", "--columns", columns, connection],
        "apply": [*rows, "apply", "--columns", columns, connection],
    }
    yield asset("database/server", "lehr.Process", server, EVERYWHERE)
    yield asset("database/schema", "lehr.DatabaseSchema", schema, after("database/server"))
    yield asset("database/lines", "lehr.Command", lines, after("database/schema", "programs/lines.py"))


def after(*ids: str) -> dict[str, object]:
    return {**EVERYWHERE, "lehr.DependsOn": {"assets": list(ids)}}
