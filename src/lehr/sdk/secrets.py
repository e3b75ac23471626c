"""Secrets, for plugins that need what intent only refers to.

    class VaultPlugin(AssetPlugin):
        def __init__(self, secrets: Secrets) -> None: ...

        async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
            password = await self._secrets.read(read.payload(target.id, Account).password)
            login(password.text())

The contract, for authors:

* Ask as late as you can, and keep nothing: a secret goes to production and nowhere else.
* No diff, message, log or exception has a secret, nor a digest of one, which can be guessed at.
  Where production can be read, compare in memory, and report `DIFFERS`.
* A program's output may repeat its input: show it through `Hidden`.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, Protocol

from lehr.base.errors import StalledError
from lehr.model.secret import Secret

HIDDEN = "[secret]"
"""Replacement for a secret."""

DIFFERS = "something else (secret)"
"""A diff's value for a secret in production that is not the intended one."""

_LEAST = 4
"""Characters: to hide each occurrence of a shorter text would reveal more than it hides."""


class SecretValue:
    """A secret. It does not show its value when printed, formatted, logged, pickled or encoded.

    Python cannot wipe memory: a secret stays there until that memory is used again.
    """

    __slots__ = ("_content",)

    def __init__(self, content: bytes) -> None:
        self._content = content

    def content(self) -> bytes:
        """The secret, byte by byte."""
        return self._content

    def text(self) -> str:
        """The secret as text, without the line break that editors and tools put at the end of a file.

        Raises:
            StalledError: it is not UTF-8, or has a NUL character, which no variable can hold.
        """
        try:
            text = self._content.decode()
        except UnicodeDecodeError:
            # Not chained: that exception holds the content.
            raise StalledError(
                "a secret is not UTF-8 text", code="SDK103", fix="use it only where bytes are accepted"
            ) from None
        if "\0" in text:
            raise StalledError(
                "a secret has a NUL character", code="SDK104", fix="use it only where bytes are accepted"
            )
        return text.removesuffix("\n").removesuffix("\r")

    def equals(self, content: bytes) -> bool:
        """Whether `content` is the secret; takes as long whatever differs."""
        return hmac.compare_digest(self._content, content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretValue) and self.equals(other.content())

    __hash__ = None  # type: ignore[assignment]  # a hash is a digest that could be guessed at

    def __repr__(self) -> str:
        return HIDDEN

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret must not be written anywhere")


class Secrets(Protocol):
    """Reads what references in intent refer to. `lehr.wiring.secrets` makes the shipped one."""

    async def read(self, secret: Secret) -> SecretValue:
        """The secret, as of the incarnation that the reference was read from.

        Raises:
            StalledError: it does not exist, or cannot be decrypted here; an operator must act.
            TransientError: it cannot be read now.
        """
        ...


class NoSecrets:
    """Has no secrets: for plugins in tests, and in programs without secrets."""

    async def read(self, secret: Secret) -> SecretValue:
        raise StalledError(f"there is no secret backend for {secret.secret}", code="SDK105")


class Hidden:
    """Hides secrets in what programs print.

    Finds them as they are, not in other spellings (escaped, encoded, in parts).
    """

    def __init__(self, values: Iterable[SecretValue] = ()) -> None:
        self._values = tuple(values)
        texts = {text for value in self._values for text in (value.content(), value.content().strip())}
        # The longer first, so that no part of it is taken for a shorter one.
        known = sorted((text for text in texts if len(text) >= _LEAST), key=len, reverse=True)
        self.longest = len(known[0]) if known else 0
        """Bytes of the longest secret that is looked for."""
        self._pattern = re.compile(b"|".join(map(re.escape, known))) if known else None

    def and_of(self, values: Iterable[SecretValue]) -> Hidden:
        """Hides these secrets as well."""
        return Hidden((*self._values, *values))

    def blotted(self, output: bytes) -> bytes:
        """`output`, as long as it was, with NUL bytes in the places of secrets; see `shown`."""
        if self._pattern is None:
            return output
        return self._pattern.sub(lambda found: b"\0" * len(found[0]), output)

    def shown(self, text: str) -> str:
        """`text` with `HIDDEN` for each secret in it, and for those that were blotted."""
        if self._pattern is None:
            return text
        blotted = self.blotted(text.encode(errors="replace")).decode(errors="replace")
        return re.sub("\0+", HIDDEN, blotted)

    def __repr__(self) -> str:
        return "Hidden()"


NOTHING_HIDDEN = Hidden()


async def revealed(secrets: Secrets, references: Mapping[str, Any]) -> dict[str, SecretValue]:
    """The values of those of `references` that are references to secrets, by name."""
    return {name: await secrets.read(item) for name, item in references.items() if isinstance(item, Secret)}
