"""Whether two builds of one snapshot give the same result: the guarantee of generation (invariant I11)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from lehr.base.diagnostics import Diagnostic, Position
from lehr.base.pointers import pointer
from lehr.model.asset import Asset
from lehr.model.incarnation import AssetChange
from lehr.model.provenance import Derivation
from lehr.query.compare import ChangeKind, FieldChange, changes_between, compare_asset
from lehr.sdk.generation import Generated

_LONGEST = 60
_CAUSES = "sort the items of sets, and do not use id(), hash() or the default repr() of objects"


def unrepeatable(one: Generated, other: Generated) -> tuple[Diagnostic, ...]:
    """Differences between two builds of one snapshot: for each generator, the first one."""
    if one.diagnostics != other.diagnostics:
        return (_other_problems(one, other),)
    firsts: dict[str, tuple[AssetChange, Derivation | None, FieldChange | None]] = {}
    counts: dict[str, int] = {}
    for change in changes_between(one.assets.values(), other.assets):
        field, by = _first_field(change)
        name = "" if by is None else by.generator
        firsts.setdefault(name, (change, by, field))
        counts[name] = counts.get(name, 0) + 1
    return tuple(_difference(*first, counts[name]) for name, first in firsts.items())


def misremembered(clean: Generated, remembering: Generated, memo: str) -> tuple[Diagnostic, ...]:
    """The same for a build that reused results of earlier builds from the file `memo`."""
    return tuple(
        replace(
            item,
            code="GEN038",
            what="the cached results of earlier builds differ from a new build",
            fix=f"an installed package was probably modified in place: stop `lehr run`, delete {memo}, and "
            "start it again",
        )
        for item in unrepeatable(clean, remembering)
    )


def _first_field(change: AssetChange) -> tuple[FieldChange | None, Derivation | None]:
    """The first field that differs, and the generator that sets it."""
    asset = change.before or change.after
    assert asset is not None, f"{change.id} is in neither"
    if change.before is None or change.after is None:
        return None, asset.made_by or _annotator(asset, "")
    field = compare_asset(change).fields[0]
    return field, _annotator(asset, field.path) or asset.made_by


def _annotator(asset: Asset, path: str) -> Derivation | None:
    for item in asset.annotated_by:
        if item.path and f"{path}/".startswith(f"{item.path}/"):
            return item.by
        if f"{path}/".startswith(f"{pointer(('addons', item.addon))}/"):
            return item.by
    return None


def _difference(
    change: AssetChange, by: Derivation | None, field: FieldChange | None, count: int
) -> Diagnostic:
    name = "the build" if by is None else by.generator
    if field is None:
        found = f"only one of two builds has asset {change.id}"
    else:
        found = f"{field.path} of {change.id} is {' in one build and '.join(_sides(field))} in another"
    more = f" ({count:,} assets differ)" if count > 1 else ""
    return Diagnostic(
        code="GEN035",
        what=f"{name} gave different results for the same input",
        why=f"{found}{more}",
        fix=_CAUSES,
        subject=change.id,
        at=None if by is None else Position(by.module, by.line),
    )


def _sides(field: FieldChange) -> Iterator[str]:
    for value, missing in ((field.before, ChangeKind.ADDED), (field.after, ChangeKind.REMOVED)):
        text = "missing" if field.kind is missing else msgspec.json.encode(value).decode()
        yield text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _other_problems(one: Generated, other: Generated) -> Diagnostic:
    """For builds with different problems: the first problem that only one of them reports."""
    both = (*one.diagnostics, *other.diagnostics)
    first = next((item for item in both if _in_one(item, one, other)), both[0])
    return Diagnostic(
        code="GEN035",
        what="two builds of the same input report different problems",
        why=f"only one of them reports: {first.what}",
        fix=_CAUSES,
        subject=first.subject,
        at=first.at,
    )


def _in_one(item: Diagnostic, one: Generated, other: Generated) -> bool:
    return (item in one.diagnostics) != (item in other.diagnostics)
