"""Resolves references to secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from lehr.base.blocking import Blocking
from lehr.base.errors import StalledError, TransientError
from lehr.model.secret import Keeper, Secret
from lehr.sdk.secrets import SecretValue
from lehr.secrets import age, sops
from lehr.secrets.decrypted_value import document_in, picked
from lehr.secrets.identities import identities

Ciphertext = Callable[[str, str], bytes | None]
"""Content of an encrypted file, by path and the reference's digest; None if it was not kept."""

_MOST_BYTES = 1 << 20


class SecretReader:
    """Implements `lehr.sdk.secrets.Secrets`.

    Args:
        base: what relative paths of files of the machine are relative to.
        state: the state folder, in which the private key may be.
        ciphertext: finds encrypted files.
        environment: Lehr's environment variables.
        blocking: runs blocking calls: files, decryption, the `sops` command.
    """

    def __init__(
        self,
        base: Path,
        state: Path,
        ciphertext: Ciphertext,
        environment: Mapping[str, str],
        blocking: Blocking,
    ) -> None:
        self._base = base
        self._state = state
        self._ciphertext = ciphertext
        self._environment = environment
        self._blocking = blocking

    async def read(self, secret: Secret) -> SecretValue:
        """The secret. Raises as `lehr.sdk.secrets.Secrets.read` does."""
        if secret.keeper is Keeper.ENV:
            return SecretValue(self._variable(secret.place))
        return SecretValue(await self._blocking.run(self._read, secret))

    def _variable(self, name: str) -> bytes:
        if name not in self._environment:
            raise StalledError(
                f"the environment of Lehr has no variable {name}, which is to hold a secret",
                code="SEC122",
                fix=f"start `lehr run` with {name}, or keep the secret elsewhere",
            )
        return self._environment[name].encode(errors="surrogateescape")

    # --- in a thread -------------------------------------------------------------

    def _read(self, secret: Secret) -> bytes:
        if secret.keeper is Keeper.FILE:
            return _file(self._base / secret.place)
        found = self._ciphertext(secret.place, secret.digest) if secret.digest else None
        if found is None:
            raise StalledError(
                f"the encrypted file {secret.place} is not there as it was in this revision",
                code="SEC123",
                why="what the incarnation was made from was not kept, or not on this machine",
                fix="publish anew: change the secret with `lehr secret edit`, and commit it",
            )
        if secret.keeper is Keeper.SOPS:
            return self._of_sops(found, secret)
        content = age.decrypt(found, identities(self._environment, self._state), secret.place)
        if not secret.key:
            return content
        return picked(document_in(content, secret.place), secret.key, secret.place)

    def _of_sops(self, content: bytes, secret: Secret) -> bytes:
        as_json = bool(secret.key)
        decrypted = sops.decrypt(content, secret.place, self._environment, as_json=as_json)
        if not as_json:
            return decrypted
        try:
            document = msgspec.json.decode(decrypted)
        except msgspec.DecodeError:
            # Not chained: the message may quote its input.
            raise StalledError(
                f"sops gave something else than JSON for {secret.place}", code="SEC124"
            ) from None
        return picked(document, secret.key, secret.place)


def _file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError as error:
        # The secrets may be put there shortly after Lehr starts.
        raise TransientError(
            f"the secret {path} is not there", code="SEC125", fix="put it there, or mend the path"
        ) from error
    except OSError as error:
        raise TransientError(
            f"the secret {path} cannot be read", code="SEC126", why=error.strerror or ""
        ) from error
    if len(content) > _MOST_BYTES:
        raise StalledError(f"the secret {path} has more than {_MOST_BYTES:,} bytes", code="SEC127")
    return content
