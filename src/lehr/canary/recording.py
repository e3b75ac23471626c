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
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from lehr.base.diagnostics import Diagnostic, Position, Severity, file_problem
from lehr.base.documents import MAX_PROBLEMS
from lehr.canary.definition import buckets
from lehr.canary.look import CANARY, CONTROL, Sample

FIRST_COLUMNS = ("time", "group", "replica")
_HEADER = "time,group,replica,requests,errors"
_CELL = re.compile(r'(?:"(?:[^"]|"")*"|[^,\n]*)(?:,|$)')
_LATEST = 1e11  # seconds, in the year 5138: larger values are milliseconds or nanoseconds
_LARGEST = 1e15  # beyond it, a float does not count every event
_FALLS = 0.2
"""Part of a replica's samples at which a counter may be smaller than before: more are not restarts."""
_FEWEST_FALLS = 4
_INEXACT, _INEXACT_BY = 1.01, 10
"""By how much a bucket may exceed a wider one, as a factor and a number: both are not read at once."""


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
    at: list[int] = []
    header: list[str] = []
    try:
        header = [name.strip() for name in next(rows, [])]
        _check_header(reader, header)
        if not reader.problems:
            _read_rows(reader, rows, header, samples, at)
    except csv.Error as error:
        reader.problem("CAN003", None, f"it is not CSV: {error}", "quote cells as CSV does")
    if not reader.problems:
        order = sorted(range(len(samples)), key=lambda index: samples[index].time)
        samples = [samples[index] for index in order]
        reader.problems += _doubts(file, samples)
        reader.problems += _falls(file, samples, [at[index] for index in order])
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
    reader: _Reader,
    rows: Iterator[Sequence[str]],
    header: Sequence[str],
    samples: list[Sample],
    lines: list[int],
) -> None:
    time, group, replica = (header.index(name) for name in FIRST_COLUMNS)
    counters = [(index, name) for index, name in enumerate(header) if name not in FIRST_COLUMNS]
    histograms = [list(bounds.values()) for bounds in buckets(header).values()]
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
            unit = "divide milliseconds by 1,000" if at is not None and at >= _LATEST else ""
            reader.problem("CAN004", time, what, unit or "write it like 1767225600 or 1767225600.5")
        if row[group].strip() not in (CANARY, CONTROL):
            what = f"`{_short(row[group])}` is not a group"
            reader.problem("CAN005", group, what, f"write `{CANARY}` or `{CONTROL}`")
        if not row[replica].strip():
            reader.problem("CAN006", replica, "the replica has no name", "name each replica")
        values = _values(reader, row, counters)
        _check_buckets(reader, values, histograms, header)
        lines.append(reader.number)
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
        if 0 <= value <= _LARGEST and "_" not in text:
            values[name] = value
        elif not math.isnan(value):
            what = f"`{_short(text)}` is not a value of the counter `{name}`"
            reader.problem("CAN007", index, what, "write a number from 0 to 1e15, or leave it empty")
    return values


def _check_buckets(
    reader: _Reader, values: Mapping[str, float], histograms: Sequence[Sequence[str]], header: Sequence[str]
) -> None:
    """Each bucket has everything that the narrower ones have."""
    for names in histograms:
        for narrow, wide in itertools.pairwise(names):
            most = values.get(wide, math.inf) * _INEXACT + _INEXACT_BY
            if values.get(narrow, 0.0) > most:
                what = f"`{narrow}` is larger than `{wide}`: the buckets are not cumulative"
                fix = "in each bucket, count everything up to its bound, as Prometheus does"
                reader.problem("CAN015", header.index(narrow), what, fix)
                return


def _falls(file: str, samples: Sequence[Sample], lines: Sequence[int]) -> Iterator[Diagnostic]:
    """Counters that fall too often to be cumulative, in most replicas: rates per second, or gauges."""
    seen: dict[tuple[str, str], Mapping[str, float]] = {}
    number: Counter[tuple[str, str]] = Counter()
    falls: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    first: dict[str, int] = {}
    for sample, line in zip(samples, lines, strict=True):
        key = sample.group, sample.replica
        before = seen.get(key)
        if before is not None:
            number[key] += 1
            for name, value in sample.values.items():
                if value < before.get(name, 0.0):
                    falls[name][key] += 1
                    first.setdefault(name, line)
        seen[key] = sample.values
    for name, found in falls.items():
        often = [key for key, count in found.items() if count >= max(_FEWEST_FALLS, _FALLS * number[key])]
        if 2 * len(often) > len(seen):
            what = f"`{name}` is not a cumulative counter: it falls at {found.total()} samples"
            fix = (
                "write the total since the start of the replica, not a rate or a gauge; or delete the column"
            )
            yield file_problem("CAN014", Position(file, first[name]), what=what, fix=fix)


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
