"""What the command prints becomes one clear message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lehr.base.errors import StalledError, TransientError
from lehr.plugins.terraform_workspace.messages import (
    Problem,
    Steps,
    error_of,
    json_problems,
    lines_of,
    progress_of,
    reported,
    text_problems,
)
from lehr.sdk.secrets import Hidden, SecretValue

HIDDEN = Hidden([SecretValue(b"hunter2-hunter2")])

BOXED = """
\x1b[31m╷\x1b[0m
\x1b[31m│\x1b[0m \x1b[1m\x1b[31mError: \x1b[0mProblems during initialisation
\x1b[31m│\x1b[0m
\x1b[31m│\x1b[0m They are described below.
\x1b[31m╵\x1b[0m
\x1b[31m╷\x1b[0m
\x1b[31m│\x1b[0m \x1b[1mError: Missing name for resource\x1b[0m
\x1b[31m│\x1b[0m
\x1b[31m│\x1b[0m   on main.tf line 9, in resource "nope":
\x1b[31m│\x1b[0m    9: resource "nope" {
\x1b[31m│\x1b[0m
\x1b[31m│\x1b[0m All resource blocks must have 2 labels.
\x1b[31m╵\x1b[0m
"""
LOCKED = """Error message: resource temporarily unavailable
Lock Info:
  ID:        3f2e2bcf
  Path:      terraform.tfstate
  Operation: OperationTypeApply
  Who:       ann@laptop
  Version:   1.11.4
  Created:   2026-11-27 09:20:03.142192728 +0000 UTC
  Info:


Terraform acquires a state lock."""


def line(**diagnostic: Any) -> bytes:
    found = {"severity": "error", "summary": "Bad", "detail": "", **diagnostic}
    return json.dumps({"type": "diagnostic", "@message": "Error", "diagnostic": found}).encode() + b"\n"


def test_text_for_people_is_understood() -> None:
    assert text_problems(BOXED)[1] == Problem(
        "Missing name for resource", "All resource blocks must have 2 labels.\n\n", "main.tf", 9
    )
    error = error_of("terraform init", text_problems(BOXED), "")
    assert isinstance(error, StalledError)
    assert str(error) == (
        "terraform init failed: Missing name for resource (main.tf line 9); 1 more error: All resource "
        "blocks must have 2 labels. (correct the module or its variables)"
    )


def test_a_missing_lock_file_is_explained() -> None:
    problem = Problem(
        "Provider dependency changes detected", "The lock\nfile is read-only. Run\nit.\n\nMore."
    )
    assert str(error_of("tofu init", [problem], "")) == (
        "tofu init failed: Provider dependency changes detected: The lock file is read-only. Run it. "
        "(run `init` in the module, and commit .terraform.lock.hcl (with `files`, list it there))"
    )


@pytest.mark.parametrize("text", ["", "  \n "])
def test_no_text_is_no_error(text: str) -> None:
    assert text_problems(text) == []


def test_other_text_is_quoted() -> None:
    assert text_problems("panic: oh\n\ngoroutine 1") == [Problem("panic: oh | goroutine 1")]


def test_lines_of_json_are_understood_and_others_left_out() -> None:
    place = {"filename": "main.tf", "start": {"line": 3}}
    output = (
        b'not json\n{"broken": \n[1]\n'
        + line(severity="warning")
        + line(range=place, address="lamp.a")
        + b"{}"
    )
    assert json_problems(output) == [Problem("Bad", "", "main.tf", 3, "lamp.a")]


@pytest.mark.parametrize("diagnostic", [{"range": 1}, {"range": {"start": 1}}, {"summary": None}], ids=str)
def test_an_odd_diagnostic_is_still_an_error(diagnostic: Any) -> None:
    assert len(json_problems(line(**diagnostic))) == 1


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (Problem("Bad", file="main.tf", line=1), StalledError),
        (Problem("Bad", file="main.tf", line=1, address="lamp.a"), TransientError),
        (Problem("Bad"), TransientError),
        (Problem("Instance cannot be destroyed", file="main.tf", address="lamp.a"), StalledError),
        (Problem("Provider dependency changes detected"), StalledError),
        (Problem("Error asking for state migration action: input is disabled"), StalledError),
        (Problem("Error acquiring the state lock", "Error message: a directory"), TransientError),
    ],
    ids=str,
)
def test_what_only_a_person_can_fix_stalls(problem: Problem, kind: type) -> None:
    assert type(error_of("terraform plan", [problem], "")) is kind


def test_the_holder_of_a_lock_is_named() -> None:
    error = error_of("terraform plan", [Problem("Error acquiring the state lock", LOCKED)], "")
    assert str(error) == (
        "the state is locked by ann@laptop: apply has held the lock since 2026-11-27 09:20:03 (wait until it "
        "ends; if it has died, unlock the state by hand: terraform force-unlock 3f2e2bcf)"
    )


def test_messages_are_short_printable_and_without_secrets() -> None:
    long = "hunter2-hunter2\x1b[31m\u202e\n" * 1000
    problem = Problem(long, long, long, 1, long)
    for text in (
        str(error_of("terraform plan", [problem] * 3, long, HIDDEN)),
        str(
            error_of("terraform plan", [Problem("Error acquiring the state lock", LOCKED + long)], "", HIDDEN)
        ),
        reported([problem], long, HIDDEN),
    ):
        assert "hunter2" not in text
        assert text.isprintable()
        assert len(text) < 5000


def test_without_an_error_its_end_is_reported() -> None:
    assert str(error_of("terraform plan", [], "exit code 1")) == "terraform plan failed: exit code 1"
    assert reported([], "exit code 1", HIDDEN) == "exit code 1"


def test_progress_counts_changes() -> None:
    steps = Steps()
    kinds = ("apply_start", "apply_progress", "apply_complete", "apply_start", "apply_errored", "other")
    hook = {"resource": {"addr": "lamp.a"}, "action": "create", "elapsed_seconds": 3}
    output = b"".join(json.dumps({"type": kind, "hook": hook}).encode() + b"\n" for kind in kinds)
    assert [progress_of(item, steps) for item in lines_of(output)] == [
        "create lamp.a",
        None,
        "create lamp.a: done after 3s (1 done)",
        "create lamp.a",
        "create lamp.a: failed",
        None,
    ]
    assert steps == Steps(2, 1, 1)
    assert progress_of({"type": "apply_start", "hook": {"resource": 1}}, steps) is None
