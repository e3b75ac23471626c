"""Rules of the payload of `lehr.TerraformWorkspace`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lehr.plugins.terraform_workspace.payload import TYPES, TerraformWorkspace

SECRET = {"secret": "env:TOKEN"}
FOLDER = {"root": "/srv/infra"}
FILES = {"root": "infra", "files": ["infra/main.tf"]}


def load(**fields: Any) -> TerraformWorkspace:
    return msgspec.convert(fields, TerraformWorkspace)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "missing required field `root`"),
        ({"root": ""}, "length >= 1"),
        ({"root": "/srv\n"}, "`root` has a control character"),
        ({**FOLDER, "program": "terra\nform"}, "`program` has a control character"),
        ({**FOLDER, "sha256": "abc"}, "regex"),
        ({**FOLDER, "workspace": "-a"}, "regex"),
        ({**FOLDER, "workspace": "../a"}, "regex"),
        ({**FILES, "root": "/infra"}, "`root` must be a folder of the workspace"),
        ({**FILES, "root": "../infra"}, "may lead out of the workspace"),
        ({**FILES, "root": "infra/"}, "empty part"),
        ({**FILES, "files": ["infra/main.tf", "../main.tf"]}, "may lead out of the workspace"),
        ({**FILES, "files": ["/infra/main.tf"]}, "it is absolute"),
        ({**FILES, "files": ["infra/main.tf", "infra/main.tf"]}, "the same file twice"),
        ({**FILES, "root": "other"}, r"no configuration \(such as other/main.tf\)"),
        ({**FILES, "files": ["infra/modules/main.tf"]}, "no configuration"),
        ({**FILES, "files": ["infra/main.txt"]}, "no configuration"),
        ({"root": ".", "files": ["infra/main.tf"]}, r"no configuration \(such as main.tf\)"),
        ({**FOLDER, "backend": {"a b": "c"}}, "`backend` has an invalid name or value at 'a b'"),
        ({**FOLDER, "backend": {"a=b": "c"}}, "`backend` has an invalid name or value"),
        ({**FOLDER, "backend": {"a": "c\n"}}, "`backend` has an invalid name or value"),
        ({**FOLDER, "variables": {"a b": 1}}, "'a b' is not the name of an input variable"),
        ({**FOLDER, "secrets": {"1": SECRET}}, "'1' is not the name of an input variable"),
        ({**FOLDER, "variables": {"a": 1}, "secrets": {"a": SECRET}}, "the variable a is given twice"),
        ({**FOLDER, "variables": {"a": "x" * 300_000}}, "at most 262,144 are allowed"),
        ({**FOLDER, "secrets": {"a": "hunter2"}}, "object"),
        ({**FOLDER, "inputs": {"a": {"asset": "b"}}}, "missing required field `output`"),
        ({**FOLDER, "environment": {"A B": "c"}}, "invalid name 'A B'"),
        ({**FOLDER, "environment": {"A": "c\0"}}, "NUL character in the value of A"),
        ({**FOLDER, "parallelism": 0}, ">= 1"),
        ({**FOLDER, "plan_timeout_seconds": 3601}, "<= 3600"),
        ({**FOLDER, "apply_timeout_seconds": 0}, "> 0"),
        ({**FOLDER, "outputs": ["a/b"]}, "regex"),
        ({**FOLDER, "lineage": ""}, "regex"),
        *(
            ({**FOLDER, "environment": {name: "x"}}, f"must not have {name}")
            for name in (
                "TF_VAR_a",
                "TF_CLI_ARGS_plan",
                "TF_LOG",
                "TF_LOG_PATH",
                "TF_DATA_DIR",
                "TF_WORKSPACE",
            )
        ),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=problem):
        load(**fields)


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"`root`.*`backend`.*twice.*TF_LOG"):
        load(
            root="a\nb",
            backend={"": 1},
            variables={"a": 1},
            secrets={"a": SECRET},
            environment={"TF_LOG": "trace"},
        )


def test_no_problem_quotes_a_secret() -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        load(**FOLDER, secrets={"a": "hunter2-hunter2"}, environment={"B": {"secret": "hunter2-hunter2"}})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("fields", [FOLDER, FILES, {"root": ".", "files": ["main.tf.json"]}], ids=str)
def test_what_can_work_is_taken(fields: dict[str, Any]) -> None:
    module = load(**fields)
    assert [file.file for file in module.workspace_files] == fields.get("files", [])
    assert msgspec.convert(msgspec.to_builtins(module), TerraformWorkspace) == module


def test_two_assets_cannot_have_one_state_in_a_folder_of_the_machine() -> None:
    claims = TYPES[0].claims
    assert claims is not None
    assert list(claims(load(**FOLDER))) == ["terraform:/srv/infra#default"]
    assert list(claims(load(**FOLDER, workspace="eu"))) == ["terraform:/srv/infra#eu"]
    assert list(claims(load(**FOLDER, backend={"key": "a"}))) == []
    assert list(claims(load(**FILES))) == []
