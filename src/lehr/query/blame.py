"""Origin of an asset, or of one of its fields: generators, files, lines, and their authors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lehr.base.diagnostics import Position
from lehr.base.errors import LehrError
from lehr.base.pointers import parts_of
from lehr.generate.outcome.globs import matcher
from lehr.generate.typing.asset_files import Declared, declared_in
from lehr.generate.typing.messages import written
from lehr.generate.typing.type_declarations import type_declared_in
from lehr.model.asset import Asset, AssetId
from lehr.model.declared import TYPE
from lehr.model.incarnation import Incarnation
from lehr.model.provenance import Annotated, Derivation
from lehr.query.asset_rows import known_asset
from lehr.query.blame_fields import Field, entries_like, field_of, occurrences, value_at
from lehr.query.blame_reader import BlameReader, entry_of
from lehr.query.blame_values import Blame, FieldBlame, InputMatch, Link, Maker, Source
from lehr.query.joined import History
from lehr.query.partition_view import Reading

_MOST_LINKS = 50
_MOST_INPUTS = 20
_MOST_SEARCHED = 200
_MOST_FOUND = 10

_OF_MESSAGES = ("schema", "form", "description")
"""Fields of a declared type whose names are in the message."""


def blame(
    reading: Reading, history: History, id: str, field: str | None = None, incarnation: str = "latest"
) -> Blame:
    """Where the asset `id`, and its `field`, come from, as of `incarnation`.

    Raises:
        LehrError: the asset, field or incarnation does not exist, or the incarnation is pruned.
    """
    header = reading.incarnation(incarnation)
    reader = BlameReader(reading, history, header)
    asset = reader.asset(AssetId(id))
    if asset is None:
        raise _not_there(reading, header, id)
    wanted = None if field is None else field_of(asset.document(), field)
    chain, whole = _chain(reader, asset, "" if wanted is None else _addon(wanted))
    since = chain[0].since
    return Blame(
        header.name,
        header.sources,
        reader.past(header.sequence) is not None,
        reader.pruned_before(since),
        chain,
        whole,
        None if wanted is None else _blame_field(reader, asset, chain, wanted),
    )


# --- the chain -----------------------------------------------------------------------


def _chain(reader: BlameReader, asset: Asset, addon: str) -> tuple[tuple[Link, ...], bool]:
    """The asset and those that it was made from, breadth first, bounded.

    A generator that annotates may read every asset there is: the chain follows it only for its `addon`.
    """
    links: list[Link] = []
    met = {asset.id}
    ahead = [asset]
    whole = True
    while ahead and len(links) < _MOST_LINKS:
        link = _link(reader, ahead.pop(0))
        links.append(link)
        for maker in link.makers:
            if maker.addon and maker.addon != addon:
                continue
            whole = whole and maker.inputs <= len(maker.files) + len(maker.assets)
            for id in maker.assets:
                found = None if id in met else reader.asset(id)
                met.add(id)
                if found is not None:
                    ahead.append(found)
    return tuple(links), whole and not ahead


def _link(reader: BlameReader, asset: Asset) -> Link:
    since = reader.since(asset.id)
    made = [] if asset.made_by is None else [_maker(reader, asset.made_by, since)]
    made += [
        _changer(reader, item, since) if item.path else _maker(reader, item.by, since, item.addon)
        for item in asset.annotated_by
    ]
    if asset.made_by is not None or asset.origin is None:
        return Link(asset.id, asset.type, since, None, tuple(made))
    declared = _declared(reader, asset, "", since)
    readable = any(entry_of(reader.past(item), asset.origin.file) for item in (reader.header.sequence, since))
    return Link(
        asset.id,
        asset.type,
        since,
        declared or reader.source(asset.origin, since, same=True),
        tuple(made),
        recorded=declared is not None or not readable,
    )


def _maker(reader: BlameReader, by: Derivation, since: int, addon: str = "") -> Maker:
    code = reader.source(Position(by.module, by.line), since, same=True)
    if by.over_files:
        files = [by.item] if by.item else _matching(reader, by.of, since)
        shown = tuple(reader.source(Position(file), since) for file in files[:_MOST_INPUTS])
        return Maker(by, code, addon, shown, (), len(files))
    ids = [AssetId(by.item)] if by.item else reader.assets(by.of)
    return Maker(by, code, addon, (), tuple(ids[:_MOST_INPUTS]), len(ids))


def _changer(reader: BlameReader, item: Annotated, since: int) -> Maker:
    """A policy that put a field: it reads nothing but the asset."""
    at = Position(item.by.module, item.by.line)
    return Maker(item.by, reader.source(at, since, same=True), path=item.path)


def _matching(reader: BlameReader, pattern: str, since: int) -> list[str]:
    past = reader.past(reader.header.sequence) or reader.past(since)
    return [] if past is None else sorted(filter(matcher(pattern), past.files()))


def _declared(reader: BlameReader, asset: Asset, pointer: str, since: int) -> Source | None:
    """The line of the asset file that sets `pointer`; None if the file leaves that out."""
    assert asset.origin is not None
    for sequence in (reader.header.sequence, since):
        past, file = reader.past(sequence), asset.origin.file
        if past is None or entry_of(past, file) is None:
            continue
        found = _declaration(asset, file, past.read(file))
        if found is not None:
            inner = _written(asset, found.value, pointer)
            if inner is None:
                return None
            return reader.at(found.document.position(found.pointer + inner), sequence)
        if asset.type == TYPE and asset.made_by is None:  # a class in a Python file declares it
            return reader.at(asset.origin, sequence)
    return None


def _written(asset: Asset, declared: dict[str, Any], pointer: str) -> str | None:
    """Where a declaration sets `pointer` of the asset; None if it leaves that out."""
    inner = pointer.removeprefix("/payload") if asset.type == TYPE else pointer
    if value_at(declared, parts_of(inner)) is not None:
        return inner
    if asset.type == TYPE:
        of_message = "message" in declared and inner.split("/")[1] in _OF_MESSAGES
        return "/message" if of_message else None
    under_another_name = written(inner, declared)  # fields of messages have two
    if value_at(declared, parts_of(under_another_name)) is not None:
        return under_another_name
    return _converted(asset, declared, inner)


def _converted(asset: Asset, declared: dict[str, Any], pointer: str) -> str | None:
    """Where a declaration in a former form of a type holds a value: its one place, or the whole.

    None if it is not in a former form.
    """
    now, parts = value_at(asset.document(), parts_of(pointer)), parts_of(pointer)
    of_payload = parts[:1] == ("payload",) and "version" in declared
    of_addon = parts[:1] == ("addons",) and len(parts) > 1 and parts[1] in declared.get("versions", {})
    if now is None or not (of_payload or of_addon):
        return None
    whole = parts[:1] if of_payload else parts[:2]
    before = value_at(declared, whole) or Field(whole, None)
    found = [entry.pointer for entry in entries_like(before.value, now)]
    return before.pointer + (found[0] if len(found) == 1 else "")


def _declaration(asset: Asset, file: str, content: bytes) -> Declared | None:
    """How a file declares the asset; a file that declares a type has that asset's payload at its top."""
    return (type_declared_in if asset.type == TYPE else declared_in)(file, content, asset.id)


# --- one field -----------------------------------------------------------------------


def _blame_field(reader: BlameReader, asset: Asset, chain: tuple[Link, ...], field: Field) -> FieldBlame:
    own = chain[0]
    within, around = _changers(own, field)
    annotations = [
        index for index, maker in enumerate(own.makers) if maker.addon and maker.addon == _addon(field)
    ]
    written = None
    if own.declared is not None and not around:
        written = _declared(reader, asset, field.pointer, own.since)
    made = [index for index, maker in enumerate(own.makers) if not maker.addon and not maker.path]
    by = around or (annotations or made) + within
    found, whole = _found(reader, chain, [own.makers[index] for index in by], field)
    since = reader.since(asset.id, field)
    return FieldBlame(field.pointer, field.value, since, written, tuple(by), found, whole)


def _changers(own: Link, field: Field) -> tuple[list[int], list[int]]:
    """Indexes of the policies that put a part of the field; and of those that put it, or its parent."""
    within: list[int] = []
    around: list[int] = []
    for index, maker in enumerate(own.makers):
        if maker.path and f"{field.pointer}/".startswith(f"{maker.path}/"):
            around.append(index)
        elif maker.path.startswith(f"{field.pointer}/"):
            within.append(index)
    return within, around


def _addon(field: Field) -> str:
    """The addon that the field is in; empty if it is in none."""
    return field.parts[1] if len(field.parts) > 1 and field.parts[0] == "addons" else ""


def _found(
    reader: BlameReader, chain: tuple[Link, ...], makers: Iterable[Maker], field: Field
) -> tuple[tuple[InputMatch, ...], bool]:
    """Places that hold the value, in the input of `makers`, those under the same name first."""
    links = {link.id: link for link in chain}
    found: list[InputMatch] = []
    ahead, met, searched = list(makers), set[str](), 0
    whole = True
    while ahead:
        maker = ahead.pop(0)
        whole = whole and maker.inputs <= len(maker.files) + len(maker.assets)
        for file in (maker.code, *maker.files):
            if file.at.file not in met and searched < _MOST_SEARCHED:
                met.add(file.at.file)
                searched += 1
                found += _in_file(reader, file, field)
        for id in maker.assets:
            link = links.pop(id, None)
            if link is None:
                continue
            ahead += [item for item in link.makers if not item.addon]
            found += _in_declaration(reader, link, field)
    found.sort(key=lambda item: (not item.same_name, item.source.at))
    return tuple(found[:_MOST_FOUND]), whole and len(found) <= _MOST_FOUND and searched < _MOST_SEARCHED


def _in_file(reader: BlameReader, file: Source, field: Field) -> list[InputMatch]:
    past = reader.past(file.incarnation)
    if past is None or not file.content:
        return []
    places = occurrences(file.at.file, past.read(file.at.file), field)
    return [InputMatch(reader.at(item.at, file.incarnation), item.same_name) for item in places]


def _in_declaration(reader: BlameReader, link: Link, field: Field) -> list[InputMatch]:
    """Places in the declaration of an asset in an asset file: in its own part of the file alone."""
    asset = reader.asset(link.id)
    past = None if link.declared is None else reader.past(link.declared.incarnation)
    if asset is None or link.declared is None or past is None:
        return []
    file = link.declared.at.file
    declared = _declaration(asset, file, past.read(file)) if link.declared.content else None
    if declared is None:
        return []
    places = (
        (declared.document.position(declared.pointer + entry.pointer), entry.name == field.name)
        for entry in entries_like(declared.value, field)
    )
    sequence = link.declared.incarnation
    return [InputMatch(reader.at(at, sequence), same_name) for at, same_name in places]


def _not_there(reading: Reading, header: Incarnation, id: str) -> LehrError:
    known_asset(reading, id)  # suggests similar ids, if there never was such an asset
    return LehrError(
        f"{header.name} has no asset {id}",
        code="QRY101",
        why="it is declared in another incarnation",
        fix="name that one with --incarnation; `lehr describe` shows when it last changed",
    )
