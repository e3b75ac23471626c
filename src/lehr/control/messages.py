"""Requests and answers of the control channel: one JSON object per line, one line each way."""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.model.evidence import RolloutCommand


class Request(msgspec.Struct, frozen=True, kw_only=True, tag_field="command", omit_defaults=True):
    """Base of all commands. The tag is the command's name."""


class Controlling(Request, frozen=True, kw_only=True):
    """Base of the commands that set a control.

    Attributes:
        selector: as `parse_selector` reads it.
        reason: why, kept with the control.
        seconds: how long it is active; None until it is lifted.
    """

    selector: str
    reason: str
    seconds: float | None = None


class Pause(Controlling, frozen=True, tag="pause"):
    """No turns for these assets."""


class Freeze(Controlling, frozen=True, tag="freeze"):
    """No pushes for these assets."""


class Pin(Controlling, frozen=True, tag="pin"):
    """Pin the content of these assets to one incarnation.

    Attributes:
        incarnation: its sequence; None means the one before the newest (a rollback).
    """

    incarnation: int | None = None


class Approve(Controlling, frozen=True, tag="approve"):
    """One asset's current diff may be carried out although it destroys.

    Attributes:
        diff_digest: the diff that the person has seen; None means the one that waits now.
    """

    diff_digest: str | None = None


class Override(Controlling, frozen=True, tag="override"):
    """An emergency: let pushes through a check that allows overriding.

    Attributes:
        check: id of the asset that configures the check.
    """

    check: str


class Restart(Controlling, frozen=True, tag="restart"):
    """Restart what runs of one asset once, by a push through all checks; lifted when that is done."""


class Lift(Request, frozen=True, tag="lift"):
    """Lift every control of a kind with this selector, or that selects only these assets.

    Attributes:
        kind: `pause`, `freeze`, `pin`, `approval`, `override`, `restart`.
    """

    kind: str
    selector: str
    reason: str = ""


class Retry(Request, frozen=True, tag="retry"):
    """Forget earlier failures of these assets and try again now."""

    selector: str


class CommandRollout(Request, frozen=True, tag="rollout"):
    """A command about the rollout of a policy.

    Attributes:
        policy: its id; empty for the only one.
    """

    action: RolloutCommand
    policy: str = ""
    reason: str = ""


class ReleaseToIntent(Request, frozen=True, tag="release"):
    """Let assets follow intent again that releases hold, although no rollout policy governs them."""

    selector: str
    reason: str = ""


class Refresh(Request, frozen=True, tag="refresh"):
    """Check the source now. Answers with the attempt."""


class Report(Request, frozen=True, tag="status"):
    """Report the program's state: process, partition, pushes under way, last attempt."""


class PruneHistory(Request, frozen=True, tag="prune"):
    """Remove incarnations, decisions and operations that are no longer needed.

    Attributes:
        keep: number of newest incarnations that stay in any case.
        seconds: anything younger stays.
    """

    keep: int
    seconds: float


AnyRequest = (
    Pause
    | Freeze
    | Pin
    | Approve
    | Override
    | Restart
    | Lift
    | Retry
    | CommandRollout
    | ReleaseToIntent
    | Refresh
    | Report
    | PruneHistory
)


class CommandResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a command.

    Attributes:
        ok: False when it was refused; `message`, `why` and `fix` then explain it.
        code: of the error that refused it.
        assets: ids of the assets concerned.
    """

    ok: bool
    message: str
    why: str = ""
    fix: str = ""
    code: str = ""
    assets: tuple[str, ...] = ()
    content: dict[str, Any] = {}
