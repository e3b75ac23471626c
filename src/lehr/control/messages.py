"""Requests and answers of the control channel: one JSON object per line, one line each way."""

from __future__ import annotations

from typing import Any

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True, tag_field="command", omit_defaults=True):
    """Base of all commands. The tag is the command's name."""


class Controlling(Request, frozen=True, kw_only=True):
    """Base of the commands that set a control.

    Attributes:
        selector: as `parse_selector` reads it.
        reason: why, kept with the control.
        seconds: how long it stands; None until it is lifted.
    """

    selector: str
    reason: str
    seconds: float | None = None


class Pause(Controlling, frozen=True, tag="pause"):
    """No turns for these assets."""


class Freeze(Controlling, frozen=True, tag="freeze"):
    """No pushes for these assets."""


class Pin(Controlling, frozen=True, tag="pin"):
    """Content of these assets stays at one incarnation.

    Attributes:
        incarnation: its sequence; None is the one before the newest (a rollback).
    """

    incarnation: int | None = None


class Approve(Controlling, frozen=True, tag="approve"):
    """One asset's present diff may be carried out although it destroys.

    Attributes:
        diff_digest: the diff that the person has seen; None takes the one that waits now.
    """

    diff_digest: str | None = None


class Override(Controlling, frozen=True, tag="override"):
    """An emergency: let pushes through a check that allows overriding.

    Attributes:
        check: id of the asset that configures the check.
    """

    check: str


class Lift(Request, frozen=True, tag="lift"):
    """Take back every control of a kind whose selector is this one, or that selects only these.

    Attributes:
        kind: `pause`, `freeze`, `pin`, `approval`, `override`.
    """

    kind: str
    selector: str
    reason: str = ""


class Retry(Request, frozen=True, tag="retry"):
    """Forget what went wrong before with these assets, and try now."""

    selector: str


class Refresh(Request, frozen=True, tag="refresh"):
    """Look at the source now. Answers with the attempt."""


class Report(Request, frozen=True, tag="status"):
    """Say how the program is: process, partition, pushes under way, last attempt."""


class PruneHistory(Request, frozen=True, tag="prune"):
    """Remove what nobody needs any more of incarnations, decisions and operations.

    Attributes:
        keep: the newest incarnations, so many, stay in any case.
        seconds: what is younger stays.
    """

    keep: int
    seconds: float


AnyRequest = Pause | Freeze | Pin | Approve | Override | Lift | Retry | Refresh | Report | PruneHistory


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a command.

    Attributes:
        ok: False when it was refused; `message`, `why` and `fix` then say why.
        code: of the error that it was refused with.
        assets: ids that it is about.
    """

    ok: bool
    message: str
    why: str = ""
    fix: str = ""
    code: str = ""
    assets: tuple[str, ...] = ()
    content: dict[str, Any] = {}
