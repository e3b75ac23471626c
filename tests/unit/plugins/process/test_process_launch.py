"""The launcher's own rules: environment files, and who a replica runs as."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from lehr.plugins.process.launch import identity, variables


def parsed(folder: Path, text: str) -> dict[str, str]:
    file = folder / "env"
    file.write_text(text)
    return variables(str(file))


def test_an_environment_file_has_one_variable_a_line(tmp_path: Path) -> None:
    text = '# settings\n\nA=1\nexport B=two words\nC=\'  quoted \'\nD="x=y"\nE=\n; old\nF="open\nA=2\n'
    assert parsed(tmp_path, text) == {
        "A": "2",
        "B": "two words",
        "C": "  quoted ",
        "D": "x=y",
        "E": "",
        "F": '"open',
    }


@pytest.mark.parametrize("line", ["hunter2", "=hunter2", "MY TOKEN=hunter2", "TOKEN\x1b=hunter2"])
def test_a_line_that_is_not_a_variable_is_named_and_not_quoted(tmp_path: Path, line: str) -> None:
    with pytest.raises(ValueError, match=r"line 2 of .*env is not NAME=value") as caught:
        parsed(tmp_path, f"A=1\n{line}\n")
    assert "hunter2" not in str(caught.value)


def test_an_environment_file_cannot_change_what_marks_a_replica(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"line 1 of .* sets LEHR_REPLICA, which is reserved"):
        parsed(tmp_path, "LEHR_REPLICA=other\n")


def test_a_replica_runs_as_lehr_does_unless_it_has_a_user() -> None:
    uid, gid, _, own = identity({})
    assert (uid, gid, own) == (os.geteuid(), os.getegid(), {})


def test_a_user_by_name_or_number_brings_groups_and_variables() -> None:
    nobody = pwd.getpwnam("nobody")
    uid, gid, groups, own = identity({"user": "nobody"})
    assert (uid, gid) == (nobody.pw_uid, nobody.pw_gid)
    assert gid in groups
    assert own["USER"] == own["LOGNAME"] == "nobody"
    assert own["HOME"] == nobody.pw_dir
    assert identity({"user": str(nobody.pw_uid)}) == (uid, gid, groups, own)


def test_a_user_without_an_entry_needs_a_group() -> None:
    with pytest.raises(LookupError, match="user 987654 has no entry in passwd"):
        identity({"user": "987654"})
    assert identity({"user": "987654", "user_group": "123"}) == (987654, 123, [123], {})


@pytest.mark.parametrize(
    ("run_as", "complaint"),
    [
        ({"user": "no-such-user"}, "user no-such-user does not exist"),
        ({"user_group": "no-such-group"}, "group no-such-group does not exist"),
    ],
)
def test_a_user_or_group_that_does_not_exist_is_named(run_as: dict[str, str], complaint: str) -> None:
    with pytest.raises(LookupError, match=complaint):
        identity(run_as)
