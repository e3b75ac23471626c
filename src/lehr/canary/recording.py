"""Recorded samples, from CSV.

    time,group,replica,requests,errors,latency_le_0.1,latency_le_1
    1767225600,canary,web-0,1200,3,1100,1195

A row for each replica and sample. Every column but the first three is a cumulative counter. An empty cell or
`NaN` is a counter that was not measured.
"""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from lehr.base.diagnostics import Diagnostic, Position, Severity, file_problem
from lehr.base.documents import MAX_PROBLEMS
from lehr.canary.look import CANARY, CONTROL, Sample

FIRST_COLUMNS = ("time", "group", "replica")
_HEADER = "time,group,replica,requests,errors"
_CELL = re.compile(r'(?:"(?:[^"]|"")*"|[^,\n]*)(?:,|$)')
_LATEST = 1e12  # seconds: larger values are milliseconds or nanoseconds


class Recording(msgspec.Struct, frozen=True):
    """Samples of a file.

    Attributes:
        counters: the columns that are counters.
        samples: ordered by time.
        diagnostics: with an error among them, some sample is missing.
    """

    counters: tuple[str, ...]
    samples: tuple[Sample, ...]
    diagnostics: tuple[Diagnostic, ...]


class _Reader:
    """Reads line by line, and remembers problems."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Diagnostic] = []
        self.line = ""
        self.number = 0

    def lines(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            self.line = line
            self.number += 1
            yield line

    def problem(self, code: str, index: int | None, what: str, fix: str = "") -> None:
        """A problem of the cell `index` of the current row; None for the row as a whole."""
        at = Position(self.file, max(self.number, 1), self._column(index))
        self.problems.append(file_problem(code, at, what=what, fix=fix))

    def _column(self, index: int | None) -> int:
        """The column of the cell in its line, unless the row has several lines."""
        if index is None:
            return 1
        found = next(itertools.islice(_CELL.finditer(self.line), index, None), None)
        return 1 if found is None else found.start() + 1


def read_recording(file: str, lines: Iterable[str]) -> Recording:
    """The samples in CSV, or everything that is wrong with it.

    Args:
        file: its name in diagnostics.
    """
    reader = _Reader(file)
    rows = csv.reader(reader.lines(lines), strict=True)
    samples: list[Sample] = []
    header: list[str] = []
    try:
        header = [name.strip() for name in next(rows, [])]
        _check_header(reader, header)
        if not reader.problems:
            _read_rows(reader, rows, header, samples)
    except csv.Error as error:
        reader.problem("CAN003", None, f"it is not CSV: {error}", "quote cells as CSV does")
    if not reader.problems:
        samples.sort(key=lambda sample: sample.time)
        reader.problems += _doubts(file, samples)
    counters = tuple(name for name in header if name not in FIRST_COLUMNS)
    return Recording(counters, tuple(samples), tuple(reader.problems))


def _check_header(reader: _Reader, header: Sequence[str]) -> None:
    for name in FIRST_COLUMNS:
        if name not in header:
            reader.problem("CAN001", None, f"there is no column `{name}`", f"the header is like `{_HEADER}`")
    if not set(header) - set(FIRST_COLUMNS):
        reader.problem("CAN001", None, "there is no counter", f"the header is like `{_HEADER}`")
    for index, name in enumerate(header):
        if not name:
            reader.problem("CAN002", index, "a column has no name", "name it, or delete it")
        elif name in header[:index]:
            reader.problem("CAN002", index, f"there are two columns `{name}`", "delete or rename one")


def _read_rows(
    reader: _Reader, rows: Iterator[Sequence[str]], header: Sequence[str], samples: list[Sample]
) -> None:
    time, group, replica = (header.index(name) for name in FIRST_COLUMNS)
    counters = [(index, name) for index, name in enumerate(header) if name not in FIRST_COLUMNS]
    names: dict[str, str] = {}  # shared, so that a day of samples needs less memory
    for row in rows:
        if not row:
            continue
        if len(reader.problems) >= MAX_PROBLEMS:
            reader.problem("CAN009", None, "there are too many problems to list them all")
            return
        if len(row) != len(header):
            what = f"the row has {len(row)} cells, the header has {len(header)}"
            reader.problem("CAN003", None, what, "leave a cell empty if its counter was not measured")
            continue
        at = _number(row[time])
        if at is None or not 0 <= at < _LATEST:
            what = f"`{_short(row[time])}` is not a time in Unix seconds"
            reader.problem("CAN004", time, what, "write it like 1767225600 or 1767225600.5")
        if row[group].strip() not in (CANARY, CONTROL):
            what = f"`{_short(row[group])}` is not a group"
            reader.problem("CAN005", group, what, f"write `{CANARY}` or `{CONTROL}`")
        if not row[replica].strip():
            reader.problem("CAN006", replica, "the replica has no name", "name each replica")
        values = _values(reader, row, counters)
        name = row[replica].strip()
        samples.append(Sample(at or 0.0, row[group].strip(), names.setdefault(name, name), values))


def _values(reader: _Reader, row: Sequence[str], counters: Sequence[tuple[int, str]]) -> dict[str, float]:
    values = {}
    for index, name in counters:
        text = row[index]
        try:
            value = float(text)
        except ValueError:
            if not text.strip():
                continue
            value = -1.0
        if 0 <= value < math.inf and "_" not in text:
            values[name] = value
        elif not math.isnan(value):
            what = f"`{_short(text)}` is not a value of the counter `{name}`"
            reader.problem("CAN007", index, what, "write a number that is not negative, or leave it empty")
    return values


def _doubts(file: str, samples: Sequence[Sample]) -> Iterator[Diagnostic]:
    """Warnings about samples that can be judged, but perhaps not as intended."""
    groups = {sample.group for sample in samples}
    for name in (CANARY, CONTROL):
        if name not in groups:
            what = f"there is no sample of a {name} replica"
            yield _warning(
                "CAN008", file, what, "the verdict is INCONCLUSIVE", f"add rows whose group is `{name}`"
            )
    seen: dict[tuple[str, str], Sample] = {}
    different = 0
    for sample in samples:
        before = seen.get((sample.group, sample.replica))
        different += before is not None and before.time == sample.time and before.values != sample.values
        seen[sample.group, sample.replica] = sample
    if different:
        what = f"{different} samples have the group, replica and time of another, but other counters"
        yield _warning(
            "CAN008", file, what, "only the first of them is used", "name each replica differently"
        )


def _warning(code: str, file: str, what: str, why: str, fix: str) -> Diagnostic:
    return file_problem(code, Position(file), what=what, why=why, fix=fix, severity=Severity.WARNING)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
