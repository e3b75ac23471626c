"""Intent in JSON, for clients that read it over HTTP.

An asset keeps the bytes of its body, so that the receiver can check its digest.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.base.diagnostics import Position
from lehr.base.digest import Digest, digest_all
from lehr.base.errors import TransientError, raised_as
from lehr.model.asset import Asset, AssetId
from lehr.model.provenance import Annotated, Derivation
from lehr.sdk.watch import Batch


class _Head(msgspec.Struct, frozen=True, omit_defaults=True):
    """All of an asset except its body. The names are those of `Asset`."""

    id: AssetId
    type: str
    digest: Digest
    origin: Position | None = None
    made_by: Derivation | None = None
    annotated_by: tuple[Annotated, ...] = ()


class AssetDocument(_Head, frozen=True, omit_defaults=True):
    """An asset in an incarnation.

    Attributes:
        digest: of id, type and body; independent of its origin.
        origin: where it was declared, at the revision in which it last changed.
        made_by: the call of the generator that made it; none if an asset file declares it.
        annotated_by: generators that added addons to it, sorted.
        addons, payload: its content, with all defaults.
        versions: those of its types that are beyond the first version.
    """

    addons: dict[str, Any] = {}
    payload: Any = None
    versions: dict[str, int] = {}


class ReceivedAsset(_Head, frozen=True, kw_only=True):
    """An asset whose body is still the bytes received."""

    addons: msgspec.Raw
    payload: msgspec.Raw
    versions: msgspec.Raw = msgspec.Raw()

    def asset(self) -> Asset:
        """The asset that was sent.

        Raises:
            TransientError: it was damaged in transit.
        """
        parts = [b'{"addons":', bytes(self.addons), b',"payload":', bytes(self.payload)]
        if bytes(self.versions):
            parts += [b',"versions":', bytes(self.versions)]
        body = b"".join((*parts, b"}"))
        if digest_all((self.id, self.type, body.decode())) != self.digest:
            raise TransientError(
                f"asset {self.id} was damaged in transit", code="SDK108", why="its digest does not match"
            )
        return Asset(self.id, self.type, body, self.digest, self.origin, self.made_by, self.annotated_by)


class _ReceivedBatch(msgspec.Struct, frozen=True):
    sequence: int = -1
    changed: tuple[ReceivedAsset, ...] = ()
    gone: tuple[AssetId, ...] = ()
    problem: Problem | None = None


class _ReceivedPage(msgspec.Struct, frozen=True):
    sequence: int
    assets: tuple[ReceivedAsset, ...]
    cursor: str = ""


class ParameterProblem(msgspec.Struct, frozen=True, omit_defaults=True):
    """The problem of one parameter of a request."""

    parameter: str
    why: str
    fix: str = ""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a request failed (RFC 9457).

    Attributes:
        type: a URN that ends with `code`.
        title: the problem.
        status: of HTTP.
        code: stable, in CamelCase.
        detail: why.
        fix: how to fix it.
        errors: the problem of each parameter.
        error: code of the error that it comes from, as in `docs/reference/errors.md`.
    """

    type: str
    title: str
    status: int
    code: str
    detail: str = ""
    fix: str = ""
    errors: tuple[ParameterProblem, ...] = ()
    error: str = ""


class BatchDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a watch: the changes of an incarnation, a heartbeat, or the reason why it ends.

    Attributes:
        sequence: of the incarnation.
        changed: new and changed assets.
        gone: ids of assets that are no longer in it, or no longer selected.
        problem: only on the last line: why the watch ends.
    """

    sequence: int
    changed: tuple[AssetDocument, ...] = ()
    gone: tuple[AssetId, ...] = ()
    problem: Problem | None = None


OTHER = "Other"
"""Code of the problem of a response that does not come from Lehr."""

LIST_AGAIN = "ListAgain"
"""Code of the problem that the changes since then are no longer known."""

PROBLEM_TYPE = "urn:lehr:problem:"

_batch = msgspec.json.Decoder(_ReceivedBatch)
_page = msgspec.json.Decoder(_ReceivedPage)
_problem = msgspec.json.Decoder(Problem)


def encode_asset(asset: Asset) -> bytes:
    """An asset as `AssetDocument`, with its body as it is."""
    head = _Head(asset.id, asset.type, asset.digest, asset.origin, asset.made_by, asset.annotated_by)
    return msgspec.json.encode(head)[:-1] + b"," + asset.body[1:]


def encode_batch(batch: Batch) -> bytes:
    """A batch as a line, `BatchDocument`."""
    line: dict[str, Any] = {"sequence": batch.sequence}
    if batch.changed:
        line["changed"] = [msgspec.Raw(encode_asset(asset)) for asset in batch.changed]
    if batch.gone:
        line["gone"] = batch.gone
    return msgspec.json.encode(line) + b"\n"


def decode_batch(line: bytes) -> Batch | Problem:
    """A parsed line of a watch: a batch, or the reason why it ends.

    Raises:
        TransientError: it was damaged in transit.
    """
    what = "the line is not a valid batch"
    with raised_as(TransientError, what, code="SDK109", on=msgspec.DecodeError):
        found = _batch.decode(line)
    if found.problem is not None:
        return found.problem
    return Batch(found.sequence, tuple(item.asset() for item in found.changed), found.gone)


def decode_page(content: bytes) -> tuple[int, list[Asset], str]:
    """A page of a listing: sequence of the incarnation, assets, and the cursor of the next page, if any.

    Raises:
        TransientError: it was damaged in transit.
    """
    what = "the response is not a valid listing"
    with raised_as(TransientError, what, code="SDK110", on=msgspec.DecodeError):
        found = _page.decode(content)
    return found.sequence, [item.asset() for item in found.assets], found.cursor


def decode_problem(status: int, content: bytes) -> Problem:
    """Why a request failed, even if a proxy answered that does not produce problems."""
    try:
        return _problem.decode(content)
    except msgspec.DecodeError:
        return Problem(f"{PROBLEM_TYPE}{OTHER}", f"the server answered {status}", status, OTHER)
