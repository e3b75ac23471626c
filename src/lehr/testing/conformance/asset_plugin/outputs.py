"""The rules of outputs. Plugins that neither return nor read any cannot break them."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from lehr.base.digest import canonical
from lehr.base.errors import LehrError, WaitingError
from lehr.model.diff import Diff, Goal
from lehr.model.outputs import NO_OUTPUTS, OutputNames, problem_with
from lehr.testing.conformance.asset_plugin.subject import Subject, applied_rule
from lehr.testing.conformance.rules import hold
from lehr.validate.secrets import secrets_in


@applied_rule
async def outputs_may_be_kept(subject: Subject) -> None:
    """They are declared and plain, at most 8 KiB, and nothing in them looks like a secret."""
    for asset in (subject.asset, subject.changed):
        await subject.apply(asset)
        for goal in (Goal.PRESENT, *subject.goals):
            found = await subject.diff(asset, goal)
            values, problem = _values(found), problem_with(_values(found), _names(subject))
            hold(not problem, f"a diff has no more than declared outputs, unlike {problem}")
            for path, secret in secrets_in(values):
                hold(False, f"no output looks like a secret, unlike `{path}`, which looks like {secret}")


@applied_rule
async def stable_outputs_last(subject: Subject) -> None:
    """Each look at unchanged production returns the same, also one of a new process."""
    first = _stable(subject, await subject.diff(subject.asset))
    for _ in range(2):
        again = _stable(subject, await subject.diff(subject.asset))
        hold(again == first, f"stable outputs are the same at each look: {first!r}, not {again!r}")
        await subject.restart()


@applied_rule
async def outputs_go_with_production(subject: Subject) -> None:
    """Once an asset is absent, a look for it returns that it has none."""
    if Goal.ABSENT not in subject.goals or (await subject.diff(subject.asset)).outputs is UNSET:
        return
    for goal in subject.goals:
        await subject.apply(subject.asset, goal)
    found = await subject.diff(subject.asset)
    hold(found.outputs == {}, f"what is absent has no outputs, unlike {found.outputs}")


@applied_rule
async def unknown_outputs_are_waited_for(subject: Subject) -> None:
    """A plugin that reads outputs waits until they are known; until then nothing happens."""
    reader = subject.reader(subject.asset)
    await subject.diff(subject.asset, reader=reader)
    if not reader.output_reads:
        return
    reader.outputs = {}
    with subject.unchanged("nothing happens while an output is not known"):
        try:
            found = await subject.diff(subject.asset, reader=reader)
        except WaitingError:
            return
        except LehrError as error:
            raise AssertionError(f"an unknown output is waited for, not {error!r}") from error
    hold(False, f"an unknown output is waited for, unlike {found.changes}")


def _names(subject: Subject) -> OutputNames:
    return subject.plugin.outputs.get(subject.asset.type, NO_OUTPUTS)


def _values(found: Diff) -> dict[str, Any]:
    return {} if found.outputs is UNSET else found.outputs


def _stable(subject: Subject, found: Diff) -> bytes:
    names = _names(subject)
    return canonical({name: value for name, value in _values(found).items() if name in names.stable})
