"""Plugins with texts: one that keeps the rules, and those that break one."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lehr.model.diff import Target
from lehr.sdk.plugin import Reader, TextChange
from tests.unit.testing.broken_plugins import SECRET, Good

Texts = Sequence[TextChange]


class Shows(Good):
    def text(self, entries: dict[str, str]) -> str:
        return "".join(f"{key} = {value}\n" for key, value in entries.items()).replace(SECRET, "...")

    async def texts(self, target: Target, read: Reader) -> Texts:
        return (TextChange("value", self.text(self.world), self.text(self.intended(target, read))),)


class WritesInTexts(Shows):
    async def texts(self, target: Target, read: Reader) -> Texts:
        self.world["shown"] = "yes"
        return await super().texts(target, read)


class ShowsAnotherTextEachTime(Shows):
    count = 0

    async def texts(self, target: Target, read: Reader) -> Texts:
        self.count += 1
        return (TextChange("value", None, str(self.count)),)


class ShowsWhatIsIntended(Shows):
    async def texts(self, target: Target, read: Reader) -> Texts:
        return (TextChange("value", None, self.text(self.intended(target, read))),)


class AnnouncesSomethingElse(Shows):
    async def texts(self, target: Target, read: Reader) -> Texts:
        [text] = await super().texts(target, read)
        same = text.observed == text.intended
        return (text if same else replace(text, intended="something else"),)


class ShowsTextsOfNoChange(Shows):
    async def texts(self, target: Target, read: Reader) -> Texts:
        return [replace(text, path="another") for text in await super().texts(target, read)]


class ShowsWhatItHides(Shows):
    async def texts(self, target: Target, read: Reader) -> Texts:
        return [replace(text, hidden="it is long") for text in await super().texts(target, read)]


class ShowsSecretTexts(Shows):
    def text(self, entries: dict[str, str]) -> str:
        return "".join(entries.values())
