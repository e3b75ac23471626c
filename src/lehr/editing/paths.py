"""Paths to values in a file.

Two spellings, distinguished by the first character:

* a JSON pointer (RFC 6901): `/assets/2/payload/replicas`;
* parts joined with dots: `assets[id=web].payload.replicas`. `[3]` is an item of a list by its number,
  `[key=text]` the one item that has this. A part with a dot or bracket in it is written in double quotes:
  `addons."lehr.Turndown".reason`.

In a file with several documents, the first part selects one: `[id=web].payload` or `/0/payload`. `-` is the
place after the last item of a list.
"""

from __future__ import annotations

import re

import msgspec

from lehr.base.pointers import unescaped

END = "-"
"""The part for the place after the last item of a list."""

_PART = re.compile(
    r'(?:^|(?<=.)\.|(?=\[))(?:"(?P<quoted>(?:[^"\\]|\\.)+)"'
    r'|\[(?P<key>[^\]=\["]+)=(?:"(?P<quotedtext>(?:[^"\\]|\\.)*)"|(?P<text>[^\]]*))\]'
    r"|\[(?P<index>\d+|-)\]"
    r'|(?P<plain>[^.\[\]"]+))'
)
_ESCAPE = re.compile(r"\\(.)")
_BARE = re.compile(r'[^.\[\]"/][^.\[\]"]*')


class Name(msgspec.Struct, frozen=True):
    """A key of a mapping, or the number of an item."""

    text: str


class Match(msgspec.Struct, frozen=True):
    """The one item of a list that has `text` at `key`."""

    key: str
    text: str


Step = Name | Match


def parse_path(path: str) -> tuple[Step, ...]:
    """The steps of `path`.

    Raises:
        ValueError: it is not a path; the message has the reason.
    """
    if path.startswith("/"):
        return tuple(_pointer_step(part) for part in path[1:].split("/"))
    steps: list[Step] = []
    position = 0
    while position < len(path):
        found = _PART.match(path, position)
        if found is None or found.end() == position:
            raise ValueError(f"it cannot be parsed from {path[position:]!r} on")
        steps.append(_step(found))
        position = found.end()
    if not steps:
        raise ValueError("it does not name a part of the file")
    return tuple(steps)


def spelt(steps: tuple[Step, ...]) -> str:
    """The path for `steps`, with dots."""
    text = ""
    for step in steps:
        if isinstance(step, Match):
            text += f"[{step.key}={step.text}]"
        elif step.text.isdecimal():
            text += f"[{step.text}]"
        else:
            text += ("." if text else "") + quoted(step.text)
    return text or "the top of the file"


def quoted(name: str) -> str:
    """`name` as a part of a path with dots."""
    if _BARE.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _pointer_step(part: str) -> Name:
    if re.search(r"~(?![01])", part):
        raise ValueError(f"in {part!r} a ~ is followed by neither 0 nor 1")
    return Name(unescaped(part))


def _step(found: re.Match[str]) -> Step:
    if found["quoted"] is not None:
        return Name(_ESCAPE.sub(r"\1", found["quoted"]))
    if found["key"] is not None:
        text = found["text"]
        return Match(found["key"], _ESCAPE.sub(r"\1", found["quotedtext"]) if text is None else text)
    return Name(found["index"] or found["plain"])
