"""Whether a plan may be used: its state, its variables and outputs, and the diff that was admitted. Pure."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from lehr.base.digest import Digest
from lehr.base.errors import StalledError, TransientError
from lehr.model.diff import Diff, Target
from lehr.plugins.terraform_workspace.payload import NO_STATE, TerraformWorkspace
from lehr.plugins.terraform_workspace.plan_changes import Plan

VALUES = "values"
"""The output that has the outputs of the module."""


def handle_of(target: Target, lineage: str) -> str | UnsetType:
    """The handle to keep; unset for the one that is known."""
    return UNSET if lineage == target.handle else lineage


def require_known(target: Target, module: TerraformWorkspace, lineage: str) -> None:
    """A state that is gone or was replaced must not count as production that is gone.

    Raises:
        StalledError: the state is another one than before, and intent does not name it.
    """
    if target.handle in ("", lineage) or module.lineage == (lineage or NO_STATE):
        return
    if lineage:
        raise StalledError(
            "the state in the backend is not the one that Lehr has compared before",
            code="TWS109",
            why=f"its lineage is {lineage}, and was {target.handle}",
            fix=f"correct `backend` and `workspace`; or, to use this state, add `lineage: {lineage}`",
        )
    raise StalledError(
        "the state is gone",
        code="TWS110",
        why=f"the backend has no state, and had one of the lineage {target.handle}",
        fix="correct `backend` and `workspace`, or restore the state from a backup; if what it described is "
        f"gone as well, add `lineage: {NO_STATE}`",
    )


def require_fitting(module: TerraformWorkspace, plan: Plan) -> None:
    """Intent and module must agree on variables and outputs.

    Raises:
        StalledError: they do not.
    """
    variables = plan.variables
    given = (*module.variables, *module.inputs, *module.secrets)
    unknown = [name for name in given if name not in variables]
    if unknown:
        raise StalledError(
            f"the module has no variable {', '.join(sorted(unknown))}",
            code="TWS115",
            why=f"it declares {', '.join(sorted(variables)) or 'none'}",
            fix="correct the name, or declare the variable",
        )
    if shown := [name for name in module.secrets if not variables[name]]:
        raise StalledError(
            f"the module does not declare the variable {', '.join(sorted(shown))} as sensitive",
            code="TWS116",
            why="its value is a secret, and would be shown by plans",
            fix="add `sensitive = true` to the variable",
        )
    for name in module.outputs:
        if name in plan.sensitive_outputs:
            raise StalledError(
                f"the output {name} is sensitive, and cannot be published",
                code="TWS117",
                fix="remove it from `outputs`",
            )
        if name not in plan.declared:
            raise StalledError(
                f"the module has no output {name}",
                code="TWS118",
                why=f"it declares {', '.join(sorted(plan.declared)) or 'none'}",
                fix="correct the name, or declare the output",
            )


def published(module: TerraformWorkspace, plan: Plan) -> dict[str, Any]:
    """The outputs that other assets can read."""
    values = {name: plan.outputs[name] for name in module.outputs if plan.outputs.get(name) is not None}
    return {VALUES: values} if values else {}


def require_admitted(diff: Diff, admitted: Digest) -> None:
    """Only the diff that was checked, and approved if necessary, is applied (invariants: I3, I4).

    Args:
        admitted: the digest of that diff.

    Raises:
        TransientError: the plan is another one.
    """
    if diff.digest() != admitted:
        raise TransientError(
            "the plan is not the one that was compared",
            code="TWS126",
            why=f"production or an input of the module has changed; a push would now change {diff.summary()}",
            fix="nothing was applied; Lehr compares again",
        )
