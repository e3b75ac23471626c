"""`tests/slow.txt` names what there is, so that a test that is renamed does not change its tier unseen."""

from __future__ import annotations

from tests.conftest import ROOT, slow


def test_every_line_begins_the_id_of_a_test() -> None:
    for line in slow():
        file, _, test = line.partition("::")
        path = ROOT / file
        if test:
            assert f"def {test.partition('[')[0]}(" in path.read_text(), line
        else:
            assert path.is_file() or (path.is_dir() and file.endswith("/")), line


def test_no_line_is_covered_by_another() -> None:
    lines = slow()
    assert [line for line in lines for other in lines if line != other and line.startswith(other)] == []
    assert len(set(lines)) == len(lines)
