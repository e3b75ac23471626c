"""The plugin `lehr.TerraformWorkspace` keeps the contract of asset plugins, with the command and a fake."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lehr.model.diff import Diff, Target
from lehr.model.operation import Outcome
from lehr.plugins.terraform_workspace.plugin import TerraformWorkspacePlugin
from lehr.sdk.plugin import Push, Reader
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import push_of
from tests.integration.plugins import troubles
from tests.terraform_workspaces import PASSWORD, REGISTRY, Workspace, real_terraform


class Admitting(TerraformWorkspacePlugin):
    """Is pushed what it has compared just before, as by the Enforcer."""

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        diff: Diff = await self.diff(target, read)
        admitted = push_of(target, push.operation.id, diff=diff, superseded=push.superseded)
        admitted.progress = push.progress  # type: ignore[method-assign]
        return await super().push(target, read, admitted)


@contextlib.contextmanager
def misbehaving(workspace: Workspace, **how: Any) -> Iterator[None]:
    workspace.misbehave(**how)
    yield
    workspace.control.unlink()


def subject_of(workspace: Workspace, **more: Any) -> Subject:
    def make() -> Admitting:
        plugin = workspace.plugin()
        plugin.__class__ = Admitting
        assert isinstance(plugin, Admitting)
        return plugin

    return Subject(
        make=make,
        registry=REGISTRY,
        asset=workspace.asset("1", outputs=("size", "lamp")),
        changed=workspace.asset("2", outputs=("size", "lamp")),
        disturb=workspace.disturb,
        observe=workspace.observed,
        secret=PASSWORD,
        interruptions=3,
        **more,
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_contract(rule: Rule, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    subject = subject_of(
        workspace,
        troubles=(
            lambda: troubles.gone(workspace.root),
            lambda: troubles.gone(Path(workspace.program)),
            lambda: troubles.file_at(workspace.lehr),
            lambda: misbehaving(workspace, print=["show", "garbage"]),
            lambda: misbehaving(workspace, refuse=f"the API refuses {PASSWORD}"),
        ),
    )
    asyncio.run(rule(subject))


@real_terraform
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_contract_with_the_real_command(rule: Rule, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, "terraform")
    asyncio.run(rule(subject_of(workspace, troubles=(lambda: troubles.gone(workspace.root),))))
