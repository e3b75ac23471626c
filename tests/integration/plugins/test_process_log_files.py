# ruff: noqa: F401, F811  (fixtures)
"""Logs are rotated as intent declares."""

from __future__ import annotations

from lehr.cli.log_reader import LogReader
from lehr.plugins.process.logs import logs
from lehr.plugins.process.payload import Logs
from tests.integration.plugins.test_process_plugin import KEY, Site, program, site, state, until

WRITER = """
i=0
while [ $i -lt 4 ]; do
    head -c 1048000 /dev/zero | tr '\\0' x; echo " $i"; i=$((i + 1))
    sleep 0.3
done
exec sleep 600
"""


def numbers(site: Site) -> list[bytes]:
    """Ends of the lines that `lehr logs` would show."""
    [log] = logs(site.root, KEY)
    reader = LogReader(log)
    try:
        return [line.text[-1:] for line in reader.lines() if line.text.endswith((b" 0", b" 1", b" 2", b" 3"))]
    finally:
        reader.close()


def test_as_many_files_are_kept_as_declared_and_read_in_order(site: Site) -> None:
    site.apply(program("sh", "-c", WRITER, logs=Logs(max_file_mib=1, max_files=4, merge_stderr=True)))
    until(lambda: numbers(site) == [b"0", b"1", b"2", b"3"])
    names = sorted(path.name for path in site.root.glob("*/assets/*/0.*.log*"))
    assert names[:2] == ["0.stdout.log", "0.stdout.log.1"]
    assert len(names) <= 4


def test_stderr_is_merged_into_the_log_of_stdout(site: Site) -> None:
    script = "echo one; echo two >&2; echo three; exec sleep 600"
    site.apply(program("sh", "-c", script))
    assert [log.stream for log in logs(site.root, KEY)] == ["stdout", "stderr"]
    site.apply(program("sh", "-c", script, logs=Logs(merge_stderr=True)))
    reader = LogReader(logs(site.root, KEY)[0])
    assert [line.text for line in reader.lines()][-3:] == [b"one", b"two", b"three"]
    reader.close()
