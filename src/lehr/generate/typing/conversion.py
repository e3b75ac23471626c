"""Plain data to typed assets, checked as a whole."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from lehr.base.diagnostics import Diagnostic, Position, Severity
from lehr.base.documents import MAX_PROBLEMS
from lehr.base.errors import StalledError
from lehr.base.pointers import pointer
from lehr.generate.typing.defaults import with_defaults
from lehr.generate.typing.messages import normalised, renamed, written
from lehr.generate.typing.problems import (
    Problem,
    did_you_mean,
    problems_of,
    quoted,
    schema_problems,
    show,
)
from lehr.generate.typing.sensitive_fields import refusal, screened
from lehr.model.asset import MAX_ASSET_BYTES, WARN_ASSET_BYTES, Asset, AssetId, id_problem, make_asset
from lehr.model.declared import TYPE
from lehr.model.evolution import FIRST
from lehr.model.provenance import Derivation
from lehr.model.schema import Form, Schema
from lehr.model.types import Registry, is_sensitive

_SUBJECT = 200  # maximum characters of a valid id
_FIELDS = ("id", "type", "version", "payload", "addons", "versions")
_MAPPING = "write such a mapping"
_SHAPE = "an asset is a mapping with id, type, payload and optional addons"

_NOT_HERE = Problem(
    "/type",
    f"a {TYPE} cannot be declared as an asset",
    "types are declared in files of their own, which `types` in lehr.yaml matches",
    "write `name: team.Service` and `schema: {...}` in a file under types/",
)

Place = Callable[[str], Position]
"""Maps a JSON pointer into the asset's document to a position in the source."""


class Converted(NamedTuple):
    """An asset, or why there is none. An asset may have warnings."""

    asset: Asset | None
    diagnostics: list[Diagnostic]


def convert(
    value: Any,
    registry: Registry,
    origin: Position,
    place: Place,
    made_by: Derivation | None = None,
    *,
    declares: bool = False,
) -> Converted:
    """The asset that the plain data `value` describes.

    Args:
        origin: the asset's origin.
        place: called only on errors.
        made_by: the generator call that yielded it.
        declares: whether it may declare a type: such assets are checked more closely elsewhere.
    """
    problems = list(_outline(value))
    if problems:
        subject = value["id"] if isinstance(value, dict) and isinstance(value.get("id"), str) else ""
        outline = [_diagnostic("GEN003", item, subject, place) for item in problems]
        return Converted(None, outline + _inner_problems(value, subject, registry, place))
    id, type_name = value["id"], sys.intern(value["type"])  # stored once for all assets of the type
    diagnostics = _identity_problems(id, type_name, registry, place)
    if type_name == TYPE and not declares:
        diagnostics.append(_diagnostic("GEN014", _NOT_HERE, id, place))
    item = registry.types.get(type_name)
    typed: Any = None
    if item is not None:
        payload, resisting = value.get("payload", {}), None
        if "version" in value:
            at = Stated("/version", "/payload")
            payload, resisting = _upgraded(payload, value["version"], type_name, registry, at)
        if resisting is None:
            typed, found = typed_value(payload, item.payload, type_name, id, "/payload", place)
            diagnostics += found
        else:
            diagnostics.append(_diagnostic("GEN017", resisting, id, place))
    typed_addons: dict[str, Any] = {}
    versions = value.get("versions", {})
    for name, written_so in value.get("addons", {}).items():
        addon, resisting = written_so, None
        if name in versions and name in registry.addons:
            at = Stated(pointer(["versions", name]), pointer(["addons", name]))
            addon, resisting = _upgraded(addon, versions[name], name, registry, at)
        if resisting is None:
            typed_addons[name], found = typed_addon(name, addon, registry, id, place)
            diagnostics += found
        else:
            diagnostics.append(_diagnostic("GEN017", resisting, id, place))
    if diagnostics:
        return Converted(None, diagnostics)
    newest = registry.versions((type_name, *typed_addons))
    asset = make_asset(AssetId(id), type_name, typed, typed_addons, origin, made_by, versions=newest)
    return size_checked(asset, place)


def _inner_problems(value: Any, subject: str, registry: Registry, place: Place) -> list[Diagnostic]:
    """Problems of the values in something that is not an asset: everything is reported at once."""
    if not isinstance(value, dict):
        return []
    found: list[Diagnostic] = []
    item = registry.types.get(value["type"]) if isinstance(value.get("type"), str) else None
    if item is not None and "payload" in value and "version" not in value:
        found += typed_value(value["payload"], item.payload, item.name, subject, "/payload", place)[1]
    if isinstance(value.get("addons"), dict) and "versions" not in value:
        for name, addon in value["addons"].items():
            found += typed_addon(name, addon, registry, subject, place)[1]
    return found


class Stated(NamedTuple):
    """JSON pointers to a stated version in an asset's document, and to the value that has it."""

    version: str
    value: str


def _upgraded(
    value: Any, version: Any, type_name: str, registry: Registry, at: Stated
) -> tuple[Any, Problem | None]:
    """A value with a stated version, converted to the newest version; or why that is impossible."""
    evolution = registry.evolution(type_name)
    if not isinstance(version, int) or isinstance(version, bool) or version < FIRST:
        what = f"the version is {show(version)}, but versions count from {FIRST}"
        return None, Problem(at.version, what, fix=f"the version of {type_name} is {evolution.version}")
    if version > evolution.version:
        what = f"there is no version {version} of {type_name}"
        return None, Problem(at.version, what, f"its version is {evolution.version}", "fix the version")
    try:
        return evolution.convert(value, version, evolution.version), None
    except StalledError as error:
        return None, Problem(at.value, error.what, error.why, "fix the value, or write it in the new form")


def typed_addon(
    name: str, value: Any, registry: Registry, subject: str, place: Place
) -> tuple[Any, list[Diagnostic]]:
    """The addon as a value of its type, or None and its problems."""
    kind = registry.addons.get(name)
    path = pointer(["addons", name])
    if kind is not None:
        return typed_value(value, kind, name, subject, path, place)
    fix = did_you_mean(name, registry.addons, f"known addons: {', '.join(sorted(registry.addons))}")
    problem = Problem(
        path, f"there is no addon type {quoted(name)}", "an addon that nothing reads has no effect", fix
    )
    return None, [_diagnostic("GEN006", problem, subject, place)]


def typed_value(
    value: Any, kind: Any, name: str, subject: str, path: str, place: Place
) -> tuple[Any, list[Diagnostic]]:
    """`value` as `kind`, whose type is called `name`; or None and everything that prevents that."""
    try:
        if not is_sensitive(kind):  # nearly no type is
            return _typed_value(value, kind, name, subject, path, place)
        return _screened_value(value, kind, name, subject, path, place)
    except RecursionError:  # the output of generators has no other bound
        problem = Problem(
            "", "it is nested too deeply", "the whole value must be checked", "reduce the nesting"
        )
        return None, [_type_problem(problem, name, subject, path, place)]


def _screened_value(
    value: Any, kind: Any, name: str, subject: str, path: str, place: Place
) -> tuple[Any, list[Diagnostic]]:
    if isinstance(kind, Schema) and kind.form is Form.PROTOBUF and kind.secrets:
        # A field is sensitive under any of its names; problems point to the name in use.
        value, place = renamed(value, kind.document), _as_written(place, value, path)
    value, refused = screened(value, kind, path)
    typed, diagnostics = _typed_value(value, kind, name, subject, path, place)
    if not refused:
        return typed, diagnostics
    diagnostics += [refusal(subject, pointer, why, place(pointer)) for pointer, why in refused]
    return None, diagnostics


def always(at: Position) -> Place:
    """The same position for all parts of a value, of which only the whole has one."""
    return lambda _pointer: at


def _as_written(place: Place, value: Any, path: str) -> Place:
    return lambda pointer: place(path + written(pointer.removeprefix(path), value))


def _typed_value(
    value: Any, kind: Any, name: str, subject: str, path: str, place: Place
) -> tuple[Any, list[Diagnostic]]:
    if isinstance(kind, Schema):
        if kind.form is Form.PROTOBUF:
            whole, problems = normalised(value, kind.document, name)
        else:
            whole = with_defaults(value, kind.document)
            problems = schema_problems(whole, kind, name)
        return whole, [_type_problem(item, name, subject, path, place) for item in problems]
    try:
        return msgspec.convert(value, kind), []
    except (msgspec.ValidationError, RecursionError):
        problems = problems_of(value, kind, name)
        return None, [_type_problem(item, name, subject, path, place) for item in problems]


def _type_problem(problem: Problem, name: str, subject: str, path: str, place: Place) -> Diagnostic:
    why, fix = f"it does not fit {name}", f"write a value that {name} accepts"
    whole = Problem(path + problem.pointer, problem.what, problem.why or why, problem.fix or fix)
    return _diagnostic("GEN007", whole, subject, place)


def size_checked(asset: Asset, place: Place) -> Converted:
    """`asset`, unless it is too large."""
    size = len(asset.body)
    if size <= WARN_ASSET_BYTES:
        return Converted(asset, [])
    too_large = size > MAX_ASSET_BYTES
    limit = MAX_ASSET_BYTES if too_large else WARN_ASSET_BYTES
    diagnostic = Diagnostic(
        code="GEN009" if too_large else "GEN010",
        what=f"asset `{asset.id}` has {size:,} bytes, more than {limit:,}",
        why="every incarnation that changes it stores it whole, and every watcher receives it",
        fix="split it, or refer to large content instead of containing it",
        subject=asset.id,
        at=place(""),
        severity=Severity.ERROR if too_large else Severity.WARNING,
    )
    return Converted(None if too_large else asset, [diagnostic])


def _outline(value: Any) -> list[Problem]:
    if not isinstance(value, dict):
        return [Problem("", f"expected an asset here, not {show(value)}", _SHAPE, _MAPPING)]
    problems = []
    for name in itertools.islice(value, MAX_PROBLEMS + 1):
        if name not in _FIELDS:
            fix = did_you_mean(str(name), _FIELDS, "fields of the asset itself go under `payload`")
            problems.append(Problem(pointer([name]), f"an asset has no field {quoted(name)}", _SHAPE, fix))
    for name in ("id", "type"):
        if name not in value:
            problems.append(Problem("", f"the asset has no `{name}`", _SHAPE, f"add `{name}`"))
        elif not isinstance(value[name], str):
            what = f"`{name}` is {show(value[name])}, not a string"
            problems.append(Problem(pointer([name]), what, fix="put it in quotes"))
    addons = value.get("addons", {})
    if not isinstance(addons, dict):
        what = f"`addons` is {show(addons)}, not a mapping of addon type to value"
        problems.append(Problem("/addons", what, fix="write `addons: {TYPE: {...}}`"))
    return [*problems, *_versions_problems(value.get("versions", {}), addons)]


def _versions_problems(versions: Any, addons: Any) -> Iterator[Problem]:
    if not isinstance(versions, dict):
        what = f"`versions` is {show(versions)}, not a mapping of addon type to version"
        yield Problem("/versions", what, fix="write `versions: {ADDON: 1}`")
        return
    for name in itertools.islice(versions, MAX_PROBLEMS + 1):
        if isinstance(addons, dict) and name not in addons:
            what = f"`versions` names {quoted(str(name))}, but the asset has no such addon"
            why = "the version of its payload's type goes into `version`"
            yield Problem(
                pointer(["versions", name]), what, why, did_you_mean(str(name), addons, "delete it")
            )


def _identity_problems(id: str, type_name: str, registry: Registry, place: Place) -> list[Diagnostic]:
    diagnostics = []
    reason = id_problem(id)
    if reason is not None:
        problem = Problem("/id", f"{quoted(id)} is not a valid asset id", reason, "choose another id")
        diagnostics.append(_diagnostic("GEN004", problem, id, place))
    if type_name not in registry.types:
        fix = did_you_mean(type_name, registry.types, f"known types: {', '.join(sorted(registry.types))}")
        problem = Problem(
            "/type",
            f"there is no asset type {quoted(type_name)}",
            "types come from an installed package, or are declared in a file under types/",
            fix,
        )
        diagnostics.append(_diagnostic("GEN005", problem, id, place))
    return diagnostics


def _diagnostic(code: str, problem: Problem, subject: str, place: Place) -> Diagnostic:
    return Diagnostic(
        code=code,
        what=problem.what,
        why=problem.why,
        fix=problem.fix,
        subject=subject if len(subject) <= _SUBJECT else subject[: _SUBJECT - 3] + "...",
        at=place(problem.pointer),
    )
