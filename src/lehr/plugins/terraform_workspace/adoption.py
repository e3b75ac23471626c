"""Drafts `lehr.TerraformWorkspace` for modules that are on the machine. Read-only: it plans."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec

from lehr.base.blocking import Blocking
from lehr.base.errors import LehrError, StalledError
from lehr.base.text import listed
from lehr.plugins.terraform_workspace.payload import (
    TERRAFORM_WORKSPACE,
    TerraformWorkspace,
    is_configuration,
)
from lehr.plugins.terraform_workspace.plan_changes import Plan
from lehr.sdk.discovered_ids import Ids
from lehr.sdk.plugin import Found

Look = Callable[[str, TerraformWorkspace], Awaitable[tuple[str, Plan]]]
"""The lineage of the state, and the plan, of a module that would be the asset of this id."""

_OPTIONS = ("program", "workspace")
_FORM = "write folders of modules, or folders that have them, then options such as program=tofu workspace=eu"


async def drafts(look: Look, blocking: Blocking, base: str, query: Sequence[str]) -> AsyncIterator[Found]:
    """A draft of each root module in some folders, or directly below them.

    Args:
        base: where relative folders start.
        query: the folders, and `NAME=VALUE` for `program` and `workspace` of the payload.

    Raises:
        StalledError: the query cannot be understood, or names a folder without modules.
    """
    folders = [part for part in query if "=" not in part]
    options = dict(part.split("=", 1) for part in query if "=" in part)
    if not folders or not options.keys() <= set(_OPTIONS):
        raise StalledError(f"{' '.join(query)[:200]!r} is not understood", code="TWS131", fix=_FORM)
    ids = Ids()
    for folder in folders:
        for root in await blocking.run(_modules, base, folder):
            yield await _draft(look, ids.propose(f"terraform/{os.path.basename(root)}"), root, options)


async def _draft(look: Look, id: str, root: str, options: dict[str, str]) -> Found:
    payload: dict[str, Any] = {"root": root, **options}
    notes: tuple[str, ...] = ()
    try:
        lineage, plan = await look(id, msgspec.convert(payload, TerraformWorkspace))
    except (LehrError, msgspec.ValidationError) as error:
        obstacle = str(error)
    else:
        shown = sorted(plan.declared - plan.sensitive_outputs)
        notes = (f"it has outputs that can be published: {listed(shown)}",) if shown else ()
        obstacle = "" if plan.diff.empty else f"its plan has changes: {plan.diff.summary()}"
        obstacle = obstacle or ("" if lineage else "it has no state, so nothing was applied")
    return Found(id=id, type=TERRAFORM_WORKSPACE, payload=payload, notes=notes, obstacle=obstacle)


def _modules(base: str, folder: str) -> list[str]:
    """The folder, if it is a module, or those directly below it. Blocks."""
    root = os.path.abspath(os.path.join(base, folder))
    try:
        below = sorted(entry.path for entry in os.scandir(root) if entry.is_dir())
        found = [path for path in (root, *below) if any(map(is_configuration, os.listdir(path)))]
    except OSError as error:
        raise StalledError(
            f"the folder {folder} cannot be searched",
            code="TWS132",
            why=error.strerror or str(error),
            fix=_FORM,
        ) from error
    if not found:
        raise StalledError(f"the folder {folder} has no modules", code="TWS133", fix=_FORM)
    return [root] if root in found else found
