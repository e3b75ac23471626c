"""Why a pass published nothing, as diagnostics. Pure."""

from __future__ import annotations

from lehr.base.diagnostics import Diagnostic
from lehr.base.digest import short
from lehr.base.errors import LehrError
from lehr.base.text import described
from lehr.model.asset import AssetId
from lehr.model.damage import DamagedError
from lehr.model.writes import Refused
from lehr.sdk.source import RefusedRevisionError


def not_taken(error: RefusedRevisionError) -> Diagnostic:
    """A revision cannot be used."""
    return Diagnostic(
        code="PUB007",
        what=error.what,
        why=error.why,
        fix=error.fix,
        subject=f"{error.revision.source} at {short(error.revision.revision)}",
    )


def not_read(name: str, error: LehrError) -> Diagnostic:
    """The source `name` cannot be read."""
    return Diagnostic(
        code="PUB001",
        what=error.what,
        why=error.why,
        fix=error.fix or "Lehr retries automatically",
        subject=name,
    )


def broken(step: str, error: Exception) -> Diagnostic:
    """A step of the pass failed because of a bug."""
    return Diagnostic(
        code="PUB006",
        what=f"the step `{step}` failed: {type(error).__name__}: {described(error)}",
        why="this is a bug in Lehr; the last incarnation stays in force",
        fix="report it with the log of `lehr run`, which has the traceback; Lehr retries automatically",
    )


def damaged(error: DamagedError) -> Diagnostic:
    """Data in the store that the pass needs is damaged."""
    return Diagnostic(code="PUB010", what=error.what, why=error.why, fix=error.fix)


def without_reason() -> Diagnostic:
    """A step ended the pass without giving a reason."""
    return Diagnostic(
        code="PUB011",
        what="the change was not published, and no step reported why",
        why="this is a bug in Lehr; the last incarnation stays in force",
        fix="report it with the log of `lehr run`; `lehr validate --clean` may report more",
    )


def not_generated(error: LehrError) -> Diagnostic:
    """No assets could be generated."""
    return Diagnostic(code="PUB002", what=error.what, why=error.why, fix=error.fix)


def other_partition(expected: str, found: str) -> Diagnostic:
    """The workspace belongs to another partition."""
    return Diagnostic(
        code="PUB003",
        what=f"the workspace names partition {found}, but this state belongs to {expected}",
        why="assets of one partition must never be mixed up with those of another",
        fix=f"set `partition: {expected}` in lehr.yaml, or use another state folder",
        subject="lehr.yaml",
    )


def overtaken(refused: Refused) -> Diagnostic:
    """The store rejected the publication."""
    return Diagnostic(code="PUB004", what="another process published first", why=refused.message)


def not_confirmed(differing: list[AssetId]) -> Diagnostic:
    """A clean build does not confirm a turndown."""
    return Diagnostic(
        code="PUB005",
        what=f"a clean build produced different assets: {', '.join(differing[:5]) or 'none'}",
        why="it requests turndowns, and nothing is removed from production by such a build",
        fix="a generator depends on something other than its input; make its output repeatable",
    )
