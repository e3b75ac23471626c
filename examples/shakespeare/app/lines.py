"""Puts the lines of plays into the database.

    python3 lines.py check --columns play,line "postgresql:///plays?host=/tmp"
    python3 lines.py apply --columns play,line "postgresql:///plays?host=/tmp"

`check` ends with 0 if every line is there, and with 1 if not; `apply` puts them there. Columns that are
not named are left alone, so that this works with every version of the schema.
"""

from __future__ import annotations

import argparse
import sys

import psycopg
from psycopg import sql

LINES = (
    ("Hamlet", "Polonius", "Brevity is the soul of wit."),
    ("Hamlet", "Polonius", "Though this be madness, yet there is method in't."),
    ("Hamlet", "Hamlet", "There is nothing either good or bad, but thinking makes it so."),
    ("Hamlet", "Ophelia", "We know what we are, but know not what we may be."),
    ("Macbeth", "Macbeth", "If it were done when 'tis done, then 'twere well it were done quickly."),
    ("Macbeth", "Lady Macbeth", "What's done cannot be undone."),
    ("Macbeth", "Donalbain", "There's daggers in men's smiles."),
    ("The Tempest", "Prospero", "We are such stuff as dreams are made on."),
    ("The Tempest", "Miranda", "O brave new world, that has such people in't!"),
    ("The Tempest", "Antonio", "What's past is prologue."),
    ("As You Like It", "Jaques", "All the world's a stage, and all the men and women merely players."),
    ("Julius Caesar", "Cassius", "The fault, dear Brutus, is not in our stars, but in ourselves."),
    ("Twelfth Night", "Malvolio", "Some are born great, some achieve greatness."),
    ("The Merchant of Venice", "Prince of Morocco", "All that glisters is not gold."),
    ("All's Well That Ends Well", "Countess", "Love all, trust a few, do wrong to none."),
)
KNOWN = {"play": 0, "speaker": 1, "line": 2}


def main() -> int:
    parser = argparse.ArgumentParser(description="Put the lines of plays into the database.")
    parser.add_argument("action", choices=["check", "apply"])
    parser.add_argument("--columns", required=True, type=lambda text: text.split(","))
    parser.add_argument("database")
    options = parser.parse_args()
    columns = [name for name in options.columns if name in KNOWN]
    rows = {
        number: tuple(line[KNOWN[name]] for name in columns) for number, line in enumerate(LINES, start=1)
    }
    with psycopg.connect(options.database, connect_timeout=5) as connection:
        return (
            check(connection, columns, rows)
            if options.action == "check"
            else apply(connection, columns, rows)
        )


def check(connection: psycopg.Connection, columns: list[str], rows: dict[int, tuple[str, ...]]) -> int:
    names = sql.SQL(", ").join(map(sql.Identifier, ["id", *columns]))
    found = connection.execute(sql.SQL("SELECT {} FROM lines").format(names)).fetchall()
    there = {number: tuple(values) for number, *values in found}
    missing = [number for number, row in rows.items() if there.get(number) != row]
    if missing:
        print(f"{len(missing)} of {len(rows)} lines are missing, or other than they should be")
    return 1 if missing else 0


def apply(connection: psycopg.Connection, columns: list[str], rows: dict[int, tuple[str, ...]]) -> int:
    statement = sql.SQL(
        "INSERT INTO lines (id, {names}) VALUES ({values}) ON CONFLICT (id) DO UPDATE SET {changes}"
    ).format(
        names=sql.SQL(", ").join(map(sql.Identifier, columns)),
        values=sql.SQL(", ").join([sql.Placeholder()] * (len(columns) + 1)),
        changes=sql.SQL(", ").join(
            sql.SQL("{name} = EXCLUDED.{name}").format(name=sql.Identifier(name)) for name in columns
        ),
    )
    with connection.cursor() as cursor:
        cursor.executemany(statement, [(number, *row) for number, row in rows.items()])
    return 0


if __name__ == "__main__":
    sys.exit(main())
