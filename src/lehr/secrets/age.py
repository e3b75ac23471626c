"""age, through pyrage: the one module that knows the library. All functions block for milliseconds.

The library's exceptions are not chained: their messages only concern keys and formats, and they may hold data
that must not be shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

from lehr.base.errors import StalledError

_SSH = ("ssh-ed25519 ", "ssh-rsa ")


class Identity(NamedTuple):
    """A private key. Its text is not shown."""

    key: Any

    def __repr__(self) -> str:
        return "Identity()"


class NewIdentity(NamedTuple):
    """A new private key, as a line of a file, and the matching recipient."""

    line: str
    recipient: str

    def __repr__(self) -> str:
        return f"NewIdentity({self.recipient})"


def generate() -> NewIdentity:
    """A new key pair."""
    made = _library().x25519.Identity.generate()
    return NewIdentity(str(made), str(made.to_public()))


def identities_in(text: str, place: str) -> list[Identity]:
    """The private keys in `text`: lines `AGE-SECRET-KEY-1...`, or one SSH key in PEM.

    Args:
        place: its name in messages.

    Raises:
        StalledError: there is no key, or a line is not a key.
    """
    library = _library()
    try:
        if "-----BEGIN" in text:
            return [Identity(library.ssh.Identity.from_buffer(text.strip().encode() + b"\n"))]
        lines = [line.strip() for line in text.splitlines()]
        keys = [line for line in lines if line and not line.startswith("#")]
        found = [Identity(library.x25519.Identity.from_str(line)) for line in keys]
    except library.IdentityError:
        raise StalledError(
            f"{place} holds something that is not an age private key",
            code="SEC101",
            why="each line must be a key (`AGE-SECRET-KEY-1...`) or a comment; one SSH key is also valid",
            fix="create one with `lehr secret keygen`",
        ) from None
    if not found:
        raise StalledError(
            f"{place} contains no private key", code="SEC102", fix="create one with `lehr secret keygen`"
        )
    return found


def recipient_of(identity: Identity) -> str | None:
    """The public key of a private one; None for an SSH key, which has it in the file next to it."""
    return str(identity.key.to_public()) if hasattr(identity.key, "to_public") else None


def is_recipient(text: str) -> bool:
    """Whether `text` is a public key: `age1...`, `ssh-ed25519 ...` or `ssh-rsa ...`."""
    try:
        _recipient(text)
    except _library().RecipientError:
        return False
    return True


def encrypt(content: bytes, recipients: Sequence[str]) -> bytes:
    """Encrypt `content` for `recipients`, as text lines (armor).

    Raises:
        StalledError: there are no recipients, or one is not a public key.
    """
    if not recipients:
        raise StalledError(
            "there are no recipients to encrypt for",
            code="SEC103",
            fix="`lehr secret keygen --add` creates a key pair",
        )
    library = _library()
    try:
        return bytes(library.encrypt(content, [_recipient(text) for text in recipients], armored=True))
    except (library.RecipientError, library.EncryptError):
        raise StalledError(
            "a recipient is not a public key", code="SEC104", fix="see `lehr secret show-recipients`"
        ) from None


def decrypt(content: bytes, identities: Sequence[Identity], place: str) -> bytes:
    """Decrypt what `encrypt` returned.

    Raises:
        StalledError: it was encrypted for others, is damaged, or is not an age file.
    """
    library = _library()
    try:
        return bytes(library.decrypt(content, [identity.key for identity in identities]))
    except library.DecryptError as error:
        others = "No matching keys" in str(error)
        raise StalledError(
            f"{place} cannot be decrypted",
            code="SEC105",
            why=(
                "it is encrypted for keys that Lehr does not have here"
                if others
                else "it is damaged, or not an age file"
            ),
            fix=(
                "add this machine's key to the recipients; run `lehr secret rotate` where you can decrypt it"
                if others
                else "restore it from an earlier revision, or encrypt it again with `lehr secret encrypt`"
            ),
        ) from None


def _recipient(text: str) -> Any:
    library = _library()
    kind = library.ssh if text.startswith(_SSH) else library.x25519
    return kind.Recipient.from_str(text)


def _library() -> ModuleType:
    """Import pyrage when a secret needs it: it is an optional dependency."""
    try:
        import pyrage  # noqa: PLC0415
    except ImportError as error:
        raise StalledError(
            "pyrage, which encrypts and decrypts age files, is not installed",
            code="SEC106",
            fix="pip install 'lehr[secrets]'",
        ) from error
    module: ModuleType = pyrage
    return module
