"""Errors on the terminal: with their code, as text or as JSON."""

from __future__ import annotations

import errno
import json

import click
import pytest

from lehr.base.errors import DEFECT, LehrError
from lehr.cli import main as module
from lehr.cli.errors import of_the_system, show_error, show_unexpected
from lehr.cli.output import output_option

ERROR = LehrError("there is no file", code="STO142", why="it was moved", fix="put it back")


def test_the_code_stands_before_what_went_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    show_error(ERROR)
    assert (
        capsys.readouterr().err
        == "error[STO142]: there is no file\n  why: it was moved\n  fix: put it back\n"
    )


def test_an_error_without_a_code_has_no_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    show_error(LehrError("the plugin has had enough"))
    assert capsys.readouterr().err == "error: the plugin has had enough\n"


def test_a_defect_has_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    show_unexpected(KeyError("x"))
    assert capsys.readouterr().err.startswith(f"error[{DEFECT}]: ")


@pytest.mark.parametrize(("form", "code"), [("json", "STO142"), ("table", None)])
def test_who_asks_for_json_is_told_errors_as_json(
    form: str, code: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command()
    @output_option("table", "json")
    def failing(form: str) -> None:
        raise ERROR

    monkeypatch.setattr(module, "cli", failing)
    monkeypatch.setattr("sys.argv", ["lehr", "-o", form])
    with pytest.raises(SystemExit):
        module.main()
    said = capsys.readouterr()
    assert said.out == ""
    if code is None:
        assert said.err.startswith("error[STO142]: ")
    else:
        expected = {"code": code, "what": ERROR.what, "why": ERROR.why, "fix": ERROR.fix}
        assert json.loads(said.err) == expected


def test_a_file_of_another_user_is_not_a_bug() -> None:
    error = of_the_system(PermissionError(errno.EACCES, "Permission denied", "/state/x"))
    assert error is not None
    assert (error.code, error.why) == ("CLI186", "Permission denied")
    assert "/state/x" in error.what


def test_other_errors_of_the_system_stay_bugs() -> None:
    assert of_the_system(OSError(errno.EBADF, "Bad file descriptor")) is None
