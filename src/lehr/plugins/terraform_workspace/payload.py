"""The payload of `lehr.TerraformWorkspace`, and its checks before any command: all problems at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from lehr.model.references import Dependency
from lehr.model.secret import Secret
from lehr.model.types import AssetType
from lehr.model.workspace_file import WorkspaceFile, path_problem

TERRAFORM_WORKSPACE = "lehr.TerraformWorkspace"

MOST_PLAN_SECONDS = 3600.0
MOST_APPLY_SECONDS = 6 * 3600.0

DEFAULT = "default"
"""Name of the workspace that every backend has."""

NO_STATE = "none"
"""In `lineage`, a state that does not exist yet."""

CONFIGURATION = (".tf", ".tf.json", ".tofu", ".tofu.json")
"""How the names of files with configuration end."""

LOCK_FILE = ".terraform.lock.hcl"

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ENVIRONMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN = ("LEHR_", "TF_VAR_", "TF_CLI_ARGS", "TF_LOG")
_OWN_NAMES = frozenset(("TF_DATA_DIR", "TF_WORKSPACE", "TF_INPUT", "TF_IN_AUTOMATION", "CHECKPOINT_DISABLE"))
_MOST_VARIABLES = 1 << 18

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=90)]


class OutputOf(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An output of another asset.

    Attributes:
        asset: the other asset, which is pushed first.
        output: name of its output, and what leads to a value within it (`values/vpc_id`).
    """

    asset: Dependency
    output: Text


class TerraformWorkspace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A root module of Terraform or OpenTofu, with its state in one workspace of a backend.

    Lehr plans with the command, shows the plan as the difference, and applies exactly the plan that was
    compared.

    Attributes:
        root: folder of the root module: in Lehr's workspace if `files` is given, else on the machine,
            absolute or relative to the base directory of the deployment.
        files: files of Lehr's workspace that the module consists of, with those of the local modules that it
            uses. The state must then be outside of this folder, in a backend.
        program: the command, by name (`terraform`, `tofu`) or path.
        sha256: digest of the command's file, in hexadecimal digits. If the file differs, it is not run.
        workspace: the workspace of the backend.
        backend: settings of the backend that its block in the module leaves out. They must not be secret.
        variables: values of input variables.
        secrets: values of input variables that are secrets. The module must declare them as sensitive.
        inputs: values of input variables that are outputs of other assets.
        environment: additional variables of the environment, such as the credentials of providers and
            backends. A value may be a reference to a secret.
        outputs: outputs of the module to publish in `values`, for other assets. None of them may be
            sensitive.
        parallelism: how many resources are read or changed at the same time.
        lock_timeout_seconds: how long to wait for the lock of the state.
        plan_timeout_seconds: for each of `init`, `plan` and `show`.
        apply_timeout_seconds: for `apply`, which is then interrupted, and killed if that does not end it.
        lineage: the lineage of a state that replaces the one which Lehr has compared before; `none` for no
            state. Without it, such a state is not used.
    """

    root: Text
    files: tuple[WorkspaceFile | str, ...] = ()
    program: Text = "terraform"
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] | None = None
    workspace: Name = DEFAULT
    backend: dict[str, str | int | bool] = {}
    variables: dict[str, Any] = {}
    secrets: dict[str, Secret] = {}
    inputs: dict[str, OutputOf] = {}
    environment: dict[str, str | Secret] = {}
    outputs: tuple[Name, ...] = ()
    parallelism: Annotated[int, msgspec.Meta(ge=1, le=256)] = 10
    lock_timeout_seconds: Annotated[int, msgspec.Meta(ge=0, le=600)] = 10
    plan_timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=MOST_PLAN_SECONDS)] = 600.0
    apply_timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=MOST_APPLY_SECONDS)] = 3600.0
    lineage: Name | None = None

    def __post_init__(self) -> None:
        files = tuple(WorkspaceFile(file) if isinstance(file, str) else file for file in self.files)
        msgspec.structs.force_setattr(self, "files", files)
        problems = [*_module_problems(self), *_variable_problems(self), *_environment_problems(self)]
        if problems:
            raise ValueError("; ".join(problems))

    @property
    def workspace_files(self) -> tuple[WorkspaceFile, ...]:
        """Files of Lehr's workspace that the module consists of; none if it is on the machine."""
        return tuple(file for file in self.files if not isinstance(file, str))


def is_configuration(name: str) -> bool:
    """Whether a file with this name holds configuration."""
    return name.endswith(CONFIGURATION)


def _module_problems(module: TerraformWorkspace) -> Iterator[str]:
    for name in ("root", "program"):
        if not getattr(module, name).isprintable():
            yield f"`{name}` has a control character"
    for name, value in module.backend.items():
        if not _VARIABLE.fullmatch(name) or not str(value).isprintable():
            yield f"`backend` has an invalid name or value at {name[:80]!r}"
    if not module.files:
        return
    paths = [file.file for file in module.workspace_files]
    if module.root != "." and (problem := path_problem(module.root)):
        yield f"`root` must be a folder of the workspace that has `files`: {problem}"
    for path in paths:
        if problem := path_problem(path):
            yield f"`files` has {path[:200]!r}: {problem}"
    if len(set(paths)) != len(paths):
        yield "`files` has the same file twice"
    prefix = "" if module.root == "." else f"{module.root}/"
    inside = [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]
    if not any("/" not in name and is_configuration(name) for name in inside):
        yield f"`files` has no configuration (such as {prefix}main.tf) in the folder `root`"


def _variable_problems(module: TerraformWorkspace) -> Iterator[str]:
    given = [*module.variables, *module.secrets, *module.inputs]
    for name in given:
        if not _VARIABLE.fullmatch(name):
            yield f"{name[:80]!r} is not the name of an input variable"
    for name in sorted({name for name in given if given.count(name) > 1}):
        yield f"the variable {name} is given twice, in `variables`, `secrets` or `inputs`"
    try:
        size = len(msgspec.json.encode(module.variables))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError, OverflowError):
        yield "`variables` must be plain JSON"
        return
    if size > _MOST_VARIABLES:
        yield f"`variables` has {size:,} bytes; at most {_MOST_VARIABLES:,} are allowed"


def _environment_problems(module: TerraformWorkspace) -> Iterator[str]:
    for name, value in module.environment.items():
        if not _ENVIRONMENT.fullmatch(name):
            yield f"`environment` has the invalid name {name[:80]!r}"
        elif name.startswith(_OWN) or name in _OWN_NAMES:
            yield f"`environment` must not have {name[:80]}, which Lehr sets or leaves out"
        if isinstance(value, str) and "\0" in value:
            yield f"`environment` contains a NUL character in the value of {name[:80]}"


def _claims(module: TerraformWorkspace) -> Iterator[str]:
    if not module.files and module.root.startswith("/") and not module.backend:
        yield f"terraform:{module.root}#{module.workspace}"


TYPES = (AssetType(TERRAFORM_WORKSPACE, TerraformWorkspace, claims=_claims),)
