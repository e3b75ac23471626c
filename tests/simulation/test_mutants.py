"""Planted bugs: each in the repository fits the code and is found, and judging tells a bug from none."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import lehr
from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError
from lehr.cli.main import cli
from lehr.cli.sim import mutants as mutants_command
from lehr.testing.sim.mutants.judge import SEEDS, MutationResult, cases, hinted, judge, mutated
from lehr.testing.sim.mutants.mutation import PLANTED, REPOSITORY, find, mutation, planted
from lehr.testing.sim.mutants.patch import PatchError, apply, normal
from tests.codes import raises

PACKAGE = Path(lehr.__file__).parent
NAMES = sorted(path.stem for path in PLANTED.glob("*.patch"))

FAST = {
    "absence-is-removal",
    "decision-not-recorded",
    "digest-without-removals",
    "epoch-not-raised",
    "hint-of-the-settled-ignored",
    "no-backoff",
    "operation-forgotten-at-restart",
    "pause-ignored",
    "pin-ignored",
    "releases-ignored",
    "removals-forgotten",
    "stale-read",
}
"""One for each invariant, found by the first histories; the others are run by `make planted`."""

FEW = 40
"""Histories that are played before the scenarios."""

HARMLESS = """\
--- a/src/lehr/client/agenda.py
+++ b/src/lehr/client/agenda.py
@@ -1,4 +1,4 @@
     def set(self, item: T, due: float) -> None:
         \"\"\"`item` is due at `due` (monotonic seconds), and not at any earlier set time.\"\"\"
-        self._due.pop(item, None)
+        self._due.pop(item, None) or None
         entry = self._due[item] = (due, item)
"""

ENDLESS = """\
--- lehr/client/agenda.py
+++ lehr/client/agenda.py
@@ -1,3 +1,5 @@
         \"\"\"Take every item that is due at `now`, in order.\"\"\"
+        while now > 3.0:
+            pass
         while (due := self.next_due()) is not None and due <= now:
             item = self._at[due].popleft()[1]
"""


def judged(text: str, played: Sequence[str], longest: float = 20.0) -> MutationResult:
    return asyncio.run(judge(mutation(text, "mine"), played, SystemClock(), longest=longest))


# --- those in the repository -------------------------------------------------------


def test_there_are_many_and_each_says_what_it_stands_for() -> None:
    found = planted()
    assert len(found) >= 40
    for item in found.values():
        assert item.bug, item.name
        assert item.thought, item.name
        assert item.breaks in {f"I{number}" for number in range(1, 13)}, item.name


def test_no_two_are_the_same() -> None:
    changes = [re.sub("@@.*@@", "", item.diff.split("--- ", 1)[1]) for item in planted().values()]
    assert len(set(changes)) == len(changes)


@pytest.mark.parametrize("name", NAMES)
def test_each_fits_the_code_as_it_is_and_leaves_python(name: str, tmp_path: Path) -> None:
    bug = find(name)
    for path in bug.paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PACKAGE.parent / path, tmp_path / path)
    bug.apply(tmp_path)
    for path in bug.paths:
        text = (tmp_path / path).read_text()
        assert text != (PACKAGE.parent / path).read_text()
        compile(text, path, "exec")


def test_each_says_what_finds_it_and_where_that_is() -> None:
    for item in planted().values():
        assert hinted(item), item.name
        if item.found.startswith("test "):
            assert (REPOSITORY / item.found.removeprefix("test ").partition("::")[0]).is_file(), item.found


def test_histories_alone_find_most_of_what_they_simulate() -> None:
    simulated = [item for item in planted().values() if not item.outside]
    found = [item.name for item in simulated if item.found.startswith("seed ")]
    assert len(found) >= 0.9 * len(simulated)


def test_what_lies_outside_of_histories_is_found_by_tests() -> None:
    for item in planted().values():
        assert item.found.startswith("test ") or not item.outside, item.name


def test_the_command_plays_as_many_histories_as_the_tests() -> None:
    assert mutants_command._SEEDS == SEEDS == int(os.environ.get("SEEDS", "1000"))


def test_one_for_each_invariant_is_fast() -> None:
    found = planted()
    assert {found[name].breaks for name in FAST} == {item.breaks for item in found.values()}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.planted) for name in NAMES]
)
def test_a_planted_bug_is_found(name: str) -> None:
    # What found it last finds it again, unless the histories have changed since: then all is played, and
    # the scenarios early, which find in seconds what many histories miss.
    everything = [*cases(range(FEW)), *(f"seed {seed}" for seed in range(FEW, SEEDS))]
    finding = asyncio.run(judge(find(name), everything, SystemClock()))
    assert finding.case is not None, f"{finding.tried} cases went well"
    assert finding.violations


def test_a_change_that_harms_nothing_is_not_found() -> None:
    finding = judged(HARMLESS, [f"seed {seed}" for seed in range(5)])
    assert (finding.case, finding.violations, finding.tried) == (None, (), 5)


def test_a_test_that_passes_finds_nothing() -> None:
    finding = judged(HARMLESS, ["test tests/unit/base/test_backoff.py"])
    assert (finding.case, finding.violations, finding.tried) == (None, (), 1)


def test_a_history_that_does_not_end_is_found() -> None:
    finding = judged(ENDLESS, ["seed 0"], longest=1.0)
    assert finding.case == "seed 0"
    assert finding.violations == ("I7: it computes for ever",)


def test_the_program_that_runs_is_not_changed(tmp_path: Path) -> None:
    before = (PACKAGE / "client/agenda.py").read_text()
    with mutated(mutation(HARMLESS, "mine")) as folder:
        assert "self._due.pop(item, None) or None" in (folder / "lehr/client/agenda.py").read_text()
        assert (PACKAGE / "client/agenda.py").read_text() == before
    assert not folder.exists()


# --- patches that cannot be judged --------------------------------------------------

OUTSIDE = HARMLESS.replace("src/lehr/client/agenda.py", "tests/ports.py")
JUDGES = HARMLESS.replace("src/lehr/client/agenda.py", "src/lehr/testing/sim/witness.py")
NEW = HARMLESS.replace("--- a/src/lehr/client/agenda.py", "--- /dev/null")
SHORT = "\n".join(HARMLESS.splitlines()[:5])
NO_SUCH = HARMLESS.replace("agenda", "agendum")
OTHER_CODE = HARMLESS.replace("self._due.pop(item, None)", "self._due.remove(item)")
NOT_PYTHON = HARMLESS.replace("None) or None", "None) or )")


@pytest.mark.parametrize(
    ("text", "code", "why"),
    [
        ("nothing of the kind\n", "SIM109", ""),
        (OUTSIDE, "SIM112", ""),
        (JUDGES, "SIM113", ""),
        (NEW, "SIM108", ""),
        (SHORT, "SIM111", "corrupt patch"),
        (NO_SUCH, "SIM111", "lehr/client/agendum.py: No such file or directory"),
        (OTHER_CODE, "SIM111", "patch failed: lehr/client/agenda.py:1"),
        (NOT_PYTHON, "SIM115", "SyntaxError"),
    ],
)
def test_what_cannot_be_judged_is_refused_with_the_reason(text: str, code: str, why: str) -> None:
    with raises(code, PatchError) as refused:
        judged(text, ["seed 0"])
    assert why in refused.value.why


def test_without_git_the_error_tells_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with raises("SIM110", PatchError):
        judged(HARMLESS, ["seed 0"])


def test_a_patch_is_applied_in_whatever_repository_the_folder_lies(tmp_path: Path) -> None:
    subprocess.run(("git", "init", "-q", str(tmp_path)), check=True)
    folder = tmp_path / "copy"
    (folder / "lehr/client").mkdir(parents=True)
    shutil.copy(PACKAGE / "client/agenda.py", folder / "lehr/client/agenda.py")
    mutation(HARMLESS, "mine").apply(folder)
    assert "self._due.pop(item, None) or None" in (folder / "lehr/client/agenda.py").read_text()


# --- patches fit code that has drifted ----------------------------------------------

PATCH = """\
--- a/lehr/x.py
+++ b/lehr/x.py
@@ -1,7 +1,7 @@
 one
 two
 three
-four
+FOUR
 five
 six
 seven
"""
LINES = ["one", "two", "three", "four", "five", "six", "seven"]


def applied(lines: Sequence[str], folder: Path) -> list[str]:
    diff, [path] = normal(PATCH)
    (folder / "lehr").mkdir()
    (folder / path).write_text("\n".join(lines) + "\n")
    apply(diff, folder)
    return (folder / path).read_text().splitlines()


@pytest.mark.parametrize(
    "lines",
    [
        LINES,
        ["new", "lines", *LINES],
        ["another", *LINES[1:]],
        [*LINES[:-2], "other", "words"],
    ],
)
def test_a_hunk_is_applied_where_it_fits(lines: list[str], tmp_path: Path) -> None:
    assert applied(lines, tmp_path) == ["FOUR" if line == "four" else line for line in lines]


def test_a_hunk_is_applied_at_the_nearest_of_several_places(tmp_path: Path) -> None:
    assert applied([*LINES, *LINES], tmp_path) == [*LINES[:3], "FOUR", *LINES[4:], *LINES]


def test_a_hunk_whose_changed_lines_are_not_there_is_refused(tmp_path: Path) -> None:
    with raises("SIM111", PatchError):
        applied(["4" if line == "four" else line for line in LINES], tmp_path)


# --- the commands ---------------------------------------------------------------------


def test_the_command_ends_with_2_if_the_patch_is_none(tmp_path: Path) -> None:
    patch = tmp_path / "mine.patch"
    patch.write_text(JUDGES)
    result = CliRunner().invoke(cli, ["sim", "mutant", str(patch)], standalone_mode=False)
    assert (result.return_value, result.exception) == (2, None)
    assert "error[SIM113]" in result.stderr


@pytest.mark.parametrize("call", [["mutants"], ["mutant", "stale-read"]])
def test_without_the_repository_an_error_tells_where_to_run_it(
    call: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lehr.testing.sim.mutants.mutation.PLANTED", tmp_path / "none")
    result = CliRunner().invoke(cli, ["sim", *call], standalone_mode=False)
    assert isinstance(result.exception, LehrError)
    assert result.exception.code == "SIM105"


def test_the_patches_of_another_folder_can_be_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.patch").write_text(JUDGES)
    monkeypatch.setattr("lehr.testing.sim.mutants.mutation.PLANTED", tmp_path / "none")
    result = CliRunner().invoke(cli, ["sim", "mutants", "--from", str(tmp_path)], standalone_mode=False)
    assert (result.return_value, result.exception) == (2, None)
    assert "error[SIM113]" in result.stderr


@pytest.mark.parametrize("name", ["pause-ignored", "pruned-push-was-of-other-content"])
def test_the_command_names_the_call_that_finds_it_again(name: str) -> None:
    call = ["sim", "mutant", name, "--seeds", "40", "--jobs", "1"]
    result = CliRunner().invoke(cli, call, standalone_mode=False)
    assert (result.return_value, result.exception) == (None, None)
    again = result.stderr.split("`")[1].split()
    told = CliRunner().invoke(cli, [*again[1:-1]], standalone_mode=False)
    assert told.stdout.splitlines()[1:] == result.stdout.splitlines()[1:]


def test_policies_are_for_one_history() -> None:
    result = CliRunner().invoke(cli, ["sim", "mutant", "pause-ignored", "--policies"])
    assert result.exit_code == 2
    assert "--policies is for --seed" in result.stderr
