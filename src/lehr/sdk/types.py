"""Types in Python files of a workspace: frozen classes that declare what they are types of.

    import msgspec
    from typing import Annotated
    from lehr.sdk.types import Reference, addon_type, asset_type

    @asset_type("shop.Team")
    class Team(msgspec.Struct, frozen=True):
        '''People who answer when something is wrong.

Attributes:
            mail: where they are reached.
        '''

        mail: str
        parent: Annotated[str, Reference(("shop.Team",))] | None = None

The contract, for authors:

* A file is run in the sandbox that generators run in, and never anywhere else. What is kept of a
  class is in its annotations: fields, defaults, constraints (`msgspec.Meta`), references, externals
  and secrets. Its methods are not: a validator must check what annotations cannot express.
* Unknown fields are refused, whether the class forbids them or not.
* The docstring of the class, with an `Attributes:` section, is what `lehr explain` shows.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from lehr.model.declared import ReferenceField
from lehr.model.evolution import FIRST, Former
from lehr.model.references import external_leaf, held_classes, patterns, reference_mark
from lehr.model.secret import Secret, Sensitive, sensitive_leaf
from lehr.model.types import AnyReference, Dependency, External, Reference

__all__ = [
    "AnyReference",
    "DeclaredClass",
    "Dependency",
    "External",
    "Reference",
    "Secret",
    "Sensitive",
    "addon_type",
    "asset_type",
    "declaration_of",
    "declared_classes",
]

_DECLARED = "__lehr_types__"
"""Where a module holds its declarations: a class may have the name of another one further down."""

Class = TypeVar("Class", bound=type[msgspec.Struct])


class DeclaredClass(msgspec.Struct, frozen=True):
    """A class's own description.

    Attributes:
        name: of the type.
        line: where that is written. kind, enforced, version, was: as in
        `lehr.model.declared.TypeDeclaration`; not checked yet.
    """

    name: str
    line: int
    kind: str = "asset"
    enforced: bool = False
    version: int = FIRST
    was: Any = ()


def asset_type(
    name: str,
    *,
    enforced: bool = False,
    version: int = FIRST,
    was: Iterable[Mapping[str, Any] | Former] = (),
) -> Callable[[Class], Class]:
    """Declare a frozen `msgspec.Struct` to be what assets of type `name` hold.

    Args:
        name: two parts or more, joined with dots (`shop.Team`).
        enforced: True if there is a plugin that moves production to them.
        version: counts the forms that the class has had.
        was: what makes the form of the next version of that of a former one, as in type files.
    """
    module = sys._getframe(1)
    mark = DeclaredClass(name, module.f_lineno, "asset", enforced, version, tuple(was))
    return lambda kind: _declared(kind, mark, module.f_globals)


def addon_type(
    name: str, *, version: int = FIRST, was: Iterable[Mapping[str, Any] | Former] = ()
) -> Callable[[Class], Class]:
    """Declare a frozen `msgspec.Struct` to be an addon. The arguments are those of `asset_type`."""
    module = sys._getframe(1)
    mark = DeclaredClass(name, module.f_lineno, "addon", version=version, was=tuple(was))
    return lambda kind: _declared(kind, mark, module.f_globals)


def _declared(kind: Class, mark: DeclaredClass, module: dict[str, Any]) -> Class:
    module.setdefault(_DECLARED, []).append((mark, kind))
    return kind


def declared_classes(module: Mapping[str, Any]) -> list[tuple[DeclaredClass, type[msgspec.Struct]]]:
    """The types that a module declares itself, in the order of their declarations."""
    found: list[tuple[DeclaredClass, type[msgspec.Struct]]] = module.get(_DECLARED, [])
    return sorted(found, key=lambda item: item[0].line)


def declaration_of(kind: type[msgspec.Struct], mark: DeclaredClass) -> dict[str, Any]:
    """The class as plain data: what a YAML file would have to contain to declare the same.

    Raises:
        ValueError: it cannot be expressed without the class.
    """
    config = getattr(kind, "__struct_config__", None)  # whatever it is that was decorated
    if config is None or not config.frozen:
        raise ValueError(f"`{getattr(kind, '__name__', kind)}` is not a frozen msgspec.Struct")
    try:
        schema = msgspec.json.schema(kind)
        references = dict(patterns(kind, reference_mark))
        externals = dict(patterns(kind, external_leaf))
        secrets = dict(patterns(kind, sensitive_leaf))
    except RecursionError as error:
        raise ValueError(f"{error}, and has references: they could be at any depth") from error
    except (TypeError, NameError) as error:
        raise ValueError(str(error)) from error
    for part in held_classes(kind):
        if "__post_init__" in vars(part) and part not in (Secret, External):
            raise ValueError(f"`{part.__name__}.__post_init__` would never be called: use annotations")
    meaning, _, _ = (inspect.getdoc(kind) or "").partition("\n\nAttributes:")
    declaration: dict[str, Any] = {
        "schema": _closed(schema),
        "references": {
            path: msgspec.to_builtins(ReferenceField(found.types, found.goes_first))
            for path, found in references.items()
        },
        "externals": sorted(externals),
        "secrets": sorted(secrets),
        "description": meaning,
        "kind": mark.kind,
        "version": mark.version,
        "was": msgspec.to_builtins(mark.was),
    }
    if mark.kind == "asset":
        declaration["enforced"] = mark.enforced
    return declaration


def _closed(node: Any) -> Any:
    """A schema in which no mapping may have undeclared fields."""
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    closed = dict(node)
    for name in _NAMED:
        if name in node:
            closed[name] = {key: _closed(item) for key, item in node[name].items()}
    for name in _INNER:
        if name in node:
            closed[name] = _closed(node[name])
    if "properties" in node:
        closed.setdefault("additionalProperties", False)
    return closed


_NAMED = ("$defs", "properties")
_INNER = ("additionalProperties", "anyOf", "items", "prefixItems")
