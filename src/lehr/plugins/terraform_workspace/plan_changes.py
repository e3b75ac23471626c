"""Reads a plan, as `show -json` prints it, into changes, effects and outputs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from lehr.base.digest import canonical, digest_bytes, short
from lehr.base.text import one_line
from lehr.model.diff import Change, Diff, Effects, bounded
from lehr.sdk.secrets import DIFFERS, HIDDEN, NOTHING_HIDDEN, Hidden

AFTER_APPLY = "(known after apply)"
"""Intended value that only the provider will know."""

REST = "more"
"""Path of the change that represents those which a diff has no room for."""

_MOST_VALUE = 120
_MOST_PATH = 200
_MOST_BYTES = 11_000
_MOST_NOTES = 10

_ACTIONS = {
    ("create",): ("present", None),
    ("delete",): (None, "present"),
    ("delete", "create"): ("deleted and created again", "present"),
    ("create", "delete"): ("created again, then deleted", "present"),
    ("forget",): ("not in the state", "in the state"),
    ("create", "forget"): ("created again, the old one not in the state", "present"),
}
_REASONS = {
    "replace_because_tainted": "it is tainted: creating it has failed",
    "replace_because_cannot_update": "it cannot be changed",
    "replace_by_request": "it was asked for",
    "replace_by_triggers": "`replace_triggered_by` has changed",
    "delete_because_no_resource_config": "it is no longer in the module",
    "delete_because_no_module": "its module is no longer used",
}


class Leaf(NamedTuple):
    """A value that differs within a resource or output.

    Attributes:
        intended, observed: None for absent.
        unknown: the intended value is known only after the push.
        secret: neither may be shown.
    """

    path: str
    intended: Any
    observed: Any
    unknown: bool = False
    secret: bool = False


class Plan(NamedTuple):
    """A plan.

    Attributes:
        diff: its changes, effects and notes.
        outputs: those of the state that are not sensitive, by name.
        sensitive_outputs: names of the others.
        declared: names of all outputs that the module declares.
        variables: by name of an input variable of the module, whether it is sensitive.
    """

    diff: Diff
    outputs: dict[str, Any]
    sensitive_outputs: frozenset[str]
    declared: frozenset[str]
    variables: dict[str, bool]


def read_plan(document: Mapping[str, Any], hidden: Hidden = NOTHING_HIDDEN, *, differs: bool) -> Plan:
    """The plan in `document`.

    Args:
        hidden: secrets that no diff may show, whether the plan marks them or not.
        differs: whether the command has reported that the plan changes something.

    Raises:
        ValueError: `document` is not a plan.
    """
    try:
        return _read(document, hidden, differs=differs)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _read(document: Mapping[str, Any], hidden: Hidden, *, differs: bool) -> Plan:
    resources = sorted(document.get("resource_changes") or (), key=_address)
    removed = [item for item in resources if "delete" in item["change"]["actions"]]
    others = [item for item in resources if "delete" not in item["change"]["actions"]]
    changes = [change for item in (*removed, *others) for change in _resource(item, hidden)]
    outputs: Mapping[str, Any] = document.get("output_changes") or {}
    for name in sorted(outputs):
        changes += _output(name, outputs[name], hidden)
    if differs and not changes:
        changes.append(Change("plan", "applied", "not applied"))
    effects = Effects()
    if changes:
        replaced = any("create" in item["change"]["actions"] for item in removed)
        touched = any(item["change"]["actions"] not in (["no-op"], ["read"]) for item in resources)
        effects = Effects(capacity=None if touched else 0, destructive=bool(removed), disruptive=replaced)
    root = document["configuration"].get("root_module") or {}
    known = {name: item for name, item in outputs.items() if item["actions"] != ["create"]}
    sensitive = frozenset(name for name, item in outputs.items() if _is_sensitive(item))
    return Plan(
        Diff(_short(changes), effects, notes=tuple(_notes(document, hidden))),
        {name: item["before"] for name, item in known.items() if name not in sensitive},
        sensitive,
        frozenset(root.get("outputs") or {}),
        {name: bool(item.get("sensitive")) for name, item in (root.get("variables") or {}).items()},
    )


def _resource(item: Mapping[str, Any], hidden: Hidden) -> Iterator[Change]:
    address, change = hidden.shown(_address(item)), item["change"]
    action = _ACTIONS.get(tuple(change["actions"]))
    if action is not None:
        intended, observed = action
        if reason := _REASONS.get(item.get("action_reason", "")):
            intended = f"{intended}, because {reason}" if intended else None
            observed = observed if intended else f"present ({reason})"
        yield Change(_path(address), intended, observed)
    if (previous := item.get("previous_address")) and previous != item["address"]:
        yield Change(_path(f"{address}/address"), address, hidden.shown(previous))
    if importing := change.get("importing"):
        id = "another id" if not isinstance(importing, dict) else importing.get("id")
        yield Change(_path(f"{address}/import"), shown(id, hidden) or "another id", None)
    if not {"create", "update"}.isdisjoint(change["actions"]):
        creates = "create" in change["actions"]  # of which most attributes are not known yet
        for leaf in _changed(change, address):
            if not (creates and leaf.unknown and leaf.intended is None):
                yield _change(leaf, hidden)


def _output(name: str, change: Mapping[str, Any], hidden: Hidden) -> Iterator[Change]:
    if change["actions"] == ["no-op"]:
        return
    if _is_sensitive(change):
        after = None if change["actions"] == ["delete"] else HIDDEN
        before = None if change["actions"] == ["create"] else DIFFERS
        yield Change(_path(f"outputs/{name}"), after, before)
        return
    for leaf in _changed(change, f"outputs/{name}"):
        yield _change(leaf, hidden)


def _changed(change: Mapping[str, Any], path: str) -> Iterator[Leaf]:
    return differences(
        change.get("after"),
        change.get("before"),
        change.get("after_unknown", False),
        (change.get("after_sensitive", False), change.get("before_sensitive", False)),
        path,
    )


def differences(
    after: Any, before: Any, unknown: Any, sensitive: tuple[Any, Any], path: str
) -> Iterator[Leaf]:
    """What differs between two values: objects by key, lists of one length by index, else as a whole.

    Args:
        unknown, sensitive: of the same shape as the values, with true where one is unknown or sensitive; of
            `sensitive`, the first belongs to `after`.
    """
    if True in sensitive:
        if after != before or unknown not in (False, None, {}, []):
            yield Leaf(path, after, before, unknown=_any(unknown), secret=True)
    elif unknown is True:
        yield Leaf(path, None, before, unknown=True, secret=_any(sensitive))
    elif keys := _keys(after, before, unknown):
        for key in keys:
            inner = (_at(sensitive[0], key), _at(sensitive[1], key))
            part = str(key).replace("/", "~1") or "~"
            yield from differences(
                _at(after, key), _at(before, key), _at(unknown, key), inner, f"{path}/{part}"
            )
    elif not _same(after, before):
        yield Leaf(path, after, before, unknown=_any(unknown), secret=_any(sensitive))


def _keys(after: Any, before: Any, unknown: Any) -> list[Any]:
    """Keys by which values are compared; none to compare them as a whole."""
    dicts = [item for item in (after, before, unknown) if isinstance(item, dict)]
    others = [item for item in (after, before) if item is not None and not isinstance(item, dict)]
    if dicts and not others:
        if isinstance(before, dict) and after is None and not _any(unknown):
            return []  # it is removed as a whole
        return sorted({key for item in dicts for key in item})
    if isinstance(after, list) and isinstance(before, list) and len(after) == len(before):
        return list(range(len(after)))
    return []


def _at(value: Any, key: Any) -> Any:
    if value is True:
        return True
    if isinstance(value, dict):
        return value.get(key)
    if isinstance(value, list) and isinstance(key, int) and key < len(value):
        return value[key]
    return None


def _any(marks: Any) -> bool:
    """Whether a structure has true anywhere."""
    if isinstance(marks, dict):
        return any(map(_any, marks.values()))
    return any(map(_any, marks)) if isinstance(marks, list | tuple) else marks is True


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _change(leaf: Leaf, hidden: Hidden) -> Change:
    path = _path(hidden.shown(leaf.path))
    if leaf.secret:
        after = None if leaf.intended is None and not leaf.unknown else HIDDEN
        return Change(path, after, None if leaf.observed is None else DIFFERS)
    before = shown(leaf.observed, hidden)
    after = AFTER_APPLY if leaf.unknown else shown(leaf.intended, hidden)
    if before == after:
        before = DIFFERS if before == HIDDEN else f"{before} (another value)"
    return Change(path, after, before)


def shown(value: Any, hidden: Hidden = NOTHING_HIDDEN) -> Any:
    """A value as a diff has it: short, and without a known secret."""
    if value is None:
        return None
    encoded = msgspec.json.encode(value).decode()
    text = value if isinstance(value, str) else encoded
    if hidden.shown(text) != text:
        return HIDDEN
    if len(encoded) <= _MOST_VALUE:
        return value
    kind = "text" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object"
    return f"{kind} of {len(encoded):,} characters ({short(digest_bytes(canonical(value)))})"


def _short(changes: list[Change]) -> tuple[Change, ...]:
    size = most = 0
    for most, change in enumerate(changes, 1):
        size += len(msgspec.json.encode(change))
        if size > _MOST_BYTES:
            return bounded(changes, REST, most - 1)
    return bounded(changes, REST, max(most, 1))


def _notes(document: Mapping[str, Any], hidden: Hidden) -> Iterator[str]:
    drifted = sorted(document.get("resource_drift") or (), key=_address)
    for item in drifted[:_MOST_NOTES]:
        address, actions = hidden.shown(_path(_address(item))), item["change"]["actions"]
        if actions == ["delete"]:
            yield f"drift: {address} was deleted outside of Terraform"
        else:
            paths = ", ".join(leaf.path.strip("/") for leaf in _changed(item["change"], ""))
            named = one_line(hidden.shown(paths))[:_MOST_PATH] or "something"
            yield f"drift: {named} of {address} was changed outside of Terraform"
    if len(drifted) > _MOST_NOTES:
        yield f"drift: {len(drifted) - _MOST_NOTES} more resources were changed outside of Terraform"
    for item in document.get("checks") or ():
        if item.get("status") in ("fail", "error"):
            yield f"the check {_path(str(item['address'].get('to_display')))} does not hold"
    if document.get("deferred_changes"):
        yield "the plan leaves some changes to a later plan"


def _address(item: Mapping[str, Any]) -> str:
    deposed = item.get("deposed")
    return f"{item['address']} (deposed {deposed})" if deposed else str(item["address"])


def _is_sensitive(change: Mapping[str, Any]) -> bool:
    return _any((change.get("before_sensitive"), change.get("after_sensitive")))


def _path(path: str) -> str:
    if path.isprintable() and len(path) <= _MOST_PATH and path == path.strip("/ "):
        return path
    readable = one_line(path)[:_MOST_PATH].strip("/ ")
    return f"{readable}... ({short(digest_bytes(path.encode(errors='replace')))})"
