"""Rows that the table of books has to have.

    python3 books.py check|apply sqlite:PATH

`check` ends with 0 if they are there, and with 1 if not; `apply` writes those that are missing.
"""

import contextlib
import sqlite3
import sys

BOOKS = {1: ("Hamlet", "Shakespeare"), 2: ("The Tempest", "Shakespeare")}


def main(action: str, path: str) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        there = {number for (number,) in connection.execute("SELECT id FROM books")}
        missing = {number: book for number, book in BOOKS.items() if number not in there}
        if action == "apply":
            rows = [(number, *book) for number, book in missing.items()]
            connection.executemany("INSERT INTO books (id, title, author) VALUES (?, ?, ?)", rows)
            return 0
    if missing:
        print(f"{len(missing)} of {len(BOOKS)} books are missing")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2].removeprefix("sqlite:")))
