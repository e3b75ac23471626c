"""Logs are read whole while they are written and rotated, and split into the runs of their program."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lehr.cli.log_reader import Line, LogReader, lines_since
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.sdk.logs import LogPosition, ProgramLog, ProgramStart
from lehr.sdk.secrets import Hidden, SecretValue

Reader = Callable[..., LogReader]

KEY = AssetKey(Partition("prod"), AssetId("web"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "0.stdout.log"


@pytest.fixture
def reader() -> Iterator[Reader]:
    """Makes readers, and closes them."""
    with contextlib.ExitStack() as opened:

        def make(path: Path, *starts: ProgramStart, hidden: str = "") -> LogReader:
            secrets = Hidden([SecretValue(hidden.encode())] if hidden else [])
            log = ProgramLog(KEY, str(path), 0, "stdout", starts, secrets)
            return opened.enter_context(contextlib.closing(LogReader(log)))

        yield make


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def rotate(path: Path) -> None:
    path.replace(f"{path}.1")


def texts(lines: Iterator[Line]) -> list[str]:
    return [line.text.decode() for line in lines]


def test_everything_kept_is_read_older_first_and_then_what_is_added(path: Path, reader: Reader) -> None:
    append(path, "one\ntwo\n")
    rotate(path)
    append(path, "three\n")
    log = reader(path)
    assert texts(log.lines()) == ["one", "two", "three"]
    assert texts(log.lines()) == []
    append(path, "four\n")
    assert texts(log.lines()) == ["four"]


@pytest.mark.parametrize("rotations", [1, 2])
def test_no_line_is_lost_or_repeated_when_the_log_is_rotated_between_two_reads(
    path: Path, reader: Reader, rotations: int
) -> None:
    append(path, "one\n")
    log = reader(path)
    assert texts(log.lines()) == ["one"]
    expected = ["late"]
    append(path, "late\n")
    for number in range(rotations):
        rotate(path)
        append(path, f"new {number}\n")
        expected.append(f"new {number}")
    assert texts(log.lines()) == expected


def test_a_log_that_was_truncated_or_removed_is_read_from_its_start(path: Path, reader: Reader) -> None:
    append(path, "a long first line\n")
    log = reader(path)
    assert texts(log.lines()) == ["a long first line"]
    path.write_text("short\n")
    assert texts(log.lines()) == ["short"]
    path.unlink()
    assert texts(log.lines()) == []
    append(path, "another file\n")
    assert texts(log.lines()) == ["another file"]


def test_a_log_that_does_not_exist_yet_is_read_once_it_does(path: Path, reader: Reader) -> None:
    log = reader(path)
    assert texts(log.lines()) == []
    append(path, "first\n")
    assert texts(log.lines()) == ["first"]


def test_a_line_is_shown_once_it_is_complete_also_across_a_rotation(path: Path, reader: Reader) -> None:
    append(path, "begin")
    log = reader(path)
    assert texts(log.lines()) == []
    rotate(path)
    append(path, " and end\nrest")
    assert texts(log.lines()) == ["begin and end"]
    assert texts(log.lines(last=True)) == ["rest"]


def test_a_line_without_an_end_does_not_fill_the_memory(path: Path, reader: Reader) -> None:
    append(path, "x" * 200_000)
    assert sum(map(len, texts(reader(path).lines()))) >= 130_000


def test_each_line_belongs_to_the_run_that_wrote_it_also_after_a_rotation(path: Path, reader: Reader) -> None:
    gone = ProgramStart(1.0, LogPosition(1, 5))
    append(path, "of the first run\n")
    second = ProgramStart(2.0, LogPosition(path.stat().st_ino, path.stat().st_size))
    append(path, "of the second\n")
    rotate(path)
    append(path, "also of the second\n")
    third = ProgramStart(3.0, LogPosition(path.stat().st_ino, path.stat().st_size))
    append(path, "of the third\n")
    assert [line.run for line in reader(path, gone, second, third).lines()] == [1, 2, 2, 3]


def test_secrets_of_the_program_are_hidden(path: Path, reader: Reader) -> None:
    append(path, "login with hunter2-hunter2 failed\n")
    assert texts(reader(path, hidden="hunter2-hunter2").lines()) == ["login with [secret] failed"]


@pytest.mark.parametrize(
    ("early", "late"),
    [
        ("2026-01-31T11:59:59Z a", "2026-01-31T12:00:00.5Z b"),
        ("2026-01-31 13:59:59,999+02:00 a", "2026-01-31 14:00:01+0200 b"),
        ('{"level":"info","time":"2026-01-31T11:00:00Z"}', '{"level":"info","time":"2026-01-31T12:00:01Z"}'),
    ],
)
def test_since_reads_the_times_that_lines_begin_with(
    path: Path, reader: Reader, early: str, late: str
) -> None:
    append(path, f"{early}\n  its second line\n{late}\n  and its second line\n")
    noon = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC).timestamp()
    assert texts(lines_since(reader(path).lines(), (), noon)) == [late, "  and its second line"]


def test_a_time_without_a_zone_is_local(path: Path, reader: Reader) -> None:
    append(path, "2026/01/31 12:00:00 [notice] 1#1: start\n")
    noon = dt.datetime(2026, 1, 31, 12).timestamp()  # noqa: DTZ001
    assert texts(lines_since(reader(path).lines(), (), noon))
    assert not texts(lines_since(reader(path).lines(), (), noon + 1))


def test_lines_without_times_count_as_the_start_of_their_program(path: Path, reader: Reader) -> None:
    append(path, "before\n")
    start = ProgramStart(100.0, LogPosition(path.stat().st_ino, path.stat().st_size))
    append(path, "after\n")
    for moment, shown in ((50.0, ["after"]), (100.0, ["after"]), (101.0, [])):
        assert texts(lines_since(reader(path, start).lines(), (start,), moment)) == shown
