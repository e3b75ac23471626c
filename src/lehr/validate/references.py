"""Checks that references have valid targets: assets, and files; and that selectors select."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from lehr.base.diagnostics import Diagnostic, Position, Severity
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import AssetChange
from lehr.model.policy import POLICY, Policy
from lehr.model.secret import SecretBackend
from lehr.model.selector import Selector
from lehr.model.types import Mention, Registry, Schema
from lehr.model.workspace_file import MOST_BYTES, MOST_TEXT_BYTES, WorkspaceFile, WorkspaceText, path_problem
from lehr.validate.proposal import AssetView, DeltaProposal

_MAKES = {SecretBackend.AGE: "lehr secret encrypt", SecretBackend.SOPS: "sops"}


def reference_missing(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL001: the target of a reference exists, even for assets that have not changed themselves."""
    names = [change.id for change in proposal.changes() if change.after is not None]
    for asset, mention in proposal.changed_mentions():
        if proposal.type_of(mention.target) is None:
            close = difflib.get_close_matches(mention.target, names, n=1)
            hint = f"did you mean `{close[0]}`?" if close else "declare it, or fix the id"
            yield _missing(proposal, asset, mention, "no file and no generator declares it", hint)
    for change in proposal.changes():
        if change.after is None:
            for asset, mention in proposal.mentioned_by_others(change.id):
                hint = "delete the reference in the same change, or put the asset back"
                yield _missing(proposal, asset, mention, "it is gone with this change", hint)


def reference_of_wrong_type(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL002: the target of a reference has a type that the field accepts."""
    for asset, mention in proposal.changed_mentions():
        yield from _wrong_type(proposal, asset, mention)
    for change in proposal.changes():
        if change.before is None or change.after is None or change.before.type == change.after.type:
            continue
        for asset, mention in proposal.mentioned_by_others(change.id):
            yield from _wrong_type(proposal, asset, mention)


def _missing(proposal: DeltaProposal, asset: Asset, mention: Mention, why: str, fix: str) -> Diagnostic:
    return Diagnostic(
        code="VAL001",
        what=f"`{asset.id}` refers to `{mention.target}`, which does not exist",
        why=f"{mention.path} names it, and {why}",
        fix=fix,
        subject=asset.id,
        at=proposal.place(asset, mention.path),
    )


def _wrong_type(proposal: DeltaProposal, asset: Asset, mention: Mention) -> Iterator[Diagnostic]:
    found = proposal.type_of(AssetId(mention.target))
    if found is None or not mention.types or found in mention.types:
        return
    wanted = " or ".join(mention.types)
    yield Diagnostic(
        code="VAL002",
        what=f"`{asset.id}` refers to `{mention.target}`, which is a {found}, not a {wanted}",
        why=f"{mention.path} accepts only assets of type {wanted}",
        fix=f"name a {wanted}",
        subject=asset.id,
        at=proposal.place(asset, mention.path),
    )


def encrypted_file_missing(view: AssetView) -> Iterator[Diagnostic]:
    """VAL042: a reference to a secret in an encrypted file names a file of this revision."""
    asset = view.change.after
    if asset is None:
        return
    for pointer, secret in view.registry.secrets(asset):
        # Generation has filled in the digests of all existing files.
        if secret.backend.encrypted and secret.digest is None:
            yield Diagnostic(
                code="VAL042",
                what=f"`{pointer}` of `{asset.id}` refers to {secret.place}, and there is no such file",
                why="encrypted files are read from the revision that refers to them, by paths relative to "
                "the folder of lehr.yaml",
                fix=f"create it with `{_MAKES[secret.backend]}` and commit it, or fix the path",
                subject=asset.id,
                at=view.place(asset, pointer),
            )


def workspace_file_unusable(view: AssetView) -> Iterator[Diagnostic]:
    """VAL043: a file whose content an asset has is in the workspace, and not too large."""
    asset = view.change.after
    if asset is None:
        return
    named_files: list[tuple[str, WorkspaceFile | WorkspaceText]] = [
        *view.registry.files(asset),
        *view.registry.texts(asset),
    ]
    for pointer, named in named_files:
        if (problem := _file_problem(named)) is not None:
            why, fix = problem
            yield Diagnostic(
                code="VAL043",
                what=f"the file {named.file}, which `{asset.id}` names, cannot be used",
                why=why,
                fix=fix,
                subject=asset.id,
                at=view.place(asset, pointer),
            )


def workspace_text_invalid(view: AssetView) -> Iterator[Diagnostic]:
    """VAL044: a text file that is part of an asset is valid."""
    asset = view.change.after
    if asset is None or not view.registry.texts(asset):
        return
    for problem in view.registry.text_problems(asset):
        yield Diagnostic(
            code="VAL044",
            what=problem.what,
            why=f"`{asset.id}` reads this file",
            fix=problem.fix,
            subject=asset.id,
            at=Position(problem.file, problem.line, 1),
        )


def _file_problem(named: WorkspaceFile | WorkspaceText) -> tuple[str, str] | None:
    if (outside := path_problem(named.file)) is not None:
        return outside, "write its path relative to the folder of lehr.yaml, without `.` and `..`"
    if named.digest is None:
        return (
            "this revision has no such file; directories, symbolic links and submodules are not read",
            "commit the file itself, or fix the path, which is relative to the folder of lehr.yaml",
        )
    if isinstance(named, WorkspaceText):
        if named.size is not None and named.size > MOST_TEXT_BYTES:
            what = f"it has {named.size:,} bytes, and the maximum is {MOST_TEXT_BYTES:,}"
            return what, "split it, because its text is part of intent"
        return None if named.text is not None else ("it is not text in UTF-8", "convert it to UTF-8")
    if named.size is not None and named.size > MOST_BYTES:
        return (
            f"it has {named.size:,} bytes, and the maximum is {MOST_BYTES:,}",
            "keep large files elsewhere, and fetch them with a lehr.Command",
        )
    return None


# --- selectors of calendars, limits and policies select existing assets -------


def selects_nothing(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL008, a warning: a new selector selects an asset, and an older one still does.

    Each selector is checked against each change. Only if it is new, or loses an asset, and selects no other
    changed asset, are the unchanged assets searched, up to the first match.
    """
    changes = {change.id: change for change in proposal.changes()}
    for asset in proposal.of_types(lambda type: _selects(proposal.registry, type)):
        pointer, selector = selector_of(proposal.registry, asset)
        if selector is None or selector.all:
            continue
        change = changes.get(asset.id)
        before = selector if change is None else _before(proposal, change)
        if before == selector and not any(_lost(change, selector) for change in changes.values()):
            continue
        if not _selects_any(proposal, changes, selector):
            yield _warning(proposal, asset, pointer, selector, lost=before == selector)


def selector_of(registry: Registry, asset: Asset) -> tuple[str, Selector | None]:
    """The JSON pointer to an asset's selector, and the selector; None if it has no selector."""
    if asset.type == POLICY:
        return "/payload/match/select", registry.payload(asset, Policy).match.select
    kind = registry.types[asset.type].payload
    found = None if isinstance(kind, Schema) else getattr(registry.payload(asset, kind), "select", None)
    return "/payload/select", found if isinstance(found, Selector) else None


def _selects(registry: Registry, type: str) -> bool:
    known = registry.types.get(type)
    fields = () if known is None else getattr(known.payload, "__struct_fields__", ())
    return type == POLICY or "select" in fields


def _before(proposal: DeltaProposal, change: AssetChange) -> Selector | None:
    """The selector that an asset had in the predecessor."""
    if change.before is None or change.after is None or change.before.type != change.after.type:
        return None
    return selector_of(proposal.registry, change.before)[1]


def _lost(change: AssetChange, selector: Selector) -> bool:
    return (
        change.before is not None
        and selector.matches(change.before)
        and (change.after is None or not selector.matches(change.after))
    )


def _selects_any(proposal: DeltaProposal, changes: Mapping[AssetId, AssetChange], selector: Selector) -> bool:
    after = (change.after for change in changes.values())
    if any(asset is not None and selector.matches(asset) for asset in after):
        return True
    return proposal.selects_unchanged(selector)


def _warning(
    proposal: DeltaProposal, asset: Asset, pointer: str, selector: Selector, *, lost: bool
) -> Diagnostic:
    return Diagnostic(
        code="VAL008",
        what=f"`{asset.id}` selects no asset: {selector}" + (" (any more)" if lost else ""),
        why="it has no effect",
        fix="check the selector's spelling; `lehr get assets` lists ids, types and labels",
        subject=asset.id,
        at=proposal.place(asset, pointer),
        severity=Severity.WARNING,
    )
