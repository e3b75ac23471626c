"""A file that an incarnation was made from is found by what it holds, whatever has become of it."""

from __future__ import annotations

from pathlib import Path

from lehr.base.clock import SystemClock
from lehr.sources import open_source
from lehr.sources.past import content_at, kept_content


def test_a_kept_file_is_found_by_its_content_id_after_it_was_changed(tmp_path: Path) -> None:
    workspace, state = tmp_path / "workspace", tmp_path / "state"
    workspace.mkdir()
    file = workspace / "db.age"
    file.write_bytes(b"one")
    source = open_source(str(workspace), state, clock=SystemClock())
    snapshot = source.newest()
    content_id = snapshot.files()["db.age"].content_id
    assert kept_content(state, content_id) is None
    assert content_at(file, content_id) == b"one"
    source.keep(snapshot.revision)
    file.write_bytes(b"two")
    assert kept_content(state, content_id) == b"one"
    assert content_at(file, content_id) is None


def test_what_nobody_kept_is_not_found(tmp_path: Path) -> None:
    assert kept_content(tmp_path, "a" * 40) is None
    assert kept_content(tmp_path, "no id") is None
    assert content_at(tmp_path / "gone", "a" * 40) is None
