"""Resolves references to secrets, in files of age and of SOPS, and in the environment."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

import msgspec

from lehr.base.blocking import Blocking
from lehr.base.errors import StalledError, TransientError
from lehr.model.secret import Secret, SecretBackend
from lehr.sdk.secrets import SecretValue
from lehr.secrets import age
from lehr.secrets.decrypted_value import document_in, picked
from lehr.secrets.identities import identities

Ciphertext = Callable[[str, str], bytes | None]
"""Content of an encrypted file, by path and the reference's digest; None if it was not kept."""

_MOST_BYTES = 1 << 20


class SecretReader:
    """Implements `lehr.sdk.secrets.Secrets`.

    Args:
        base: folder that relative paths of files on the machine start from.
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
        if secret.backend is SecretBackend.ENV:
            return SecretValue(self._variable(secret.place))
        return SecretValue(await self._blocking.run(self._read, secret))

    def _variable(self, name: str) -> bytes:
        if name not in self._environment:
            raise StalledError(
                f"the environment of Lehr has no variable {name}, which should hold a secret",
                code="SEC122",
                fix=f"set {name} and start `lehr run` again, or keep the secret elsewhere",
            )
        return self._environment[name].encode(errors="surrogateescape")

    # --- in a thread -------------------------------------------------------------

    def _read(self, secret: Secret) -> bytes:
        if secret.backend is SecretBackend.FILE:
            return _file(self._base / secret.place)
        found = self._ciphertext(secret.place, secret.digest) if secret.digest else None
        if found is None:
            raise StalledError(
                f"the encrypted file {secret.place} of this revision is not available",
                code="SEC123",
                why="the files of this incarnation were not kept, or are not on this machine",
                fix="publish it again: change the secret with `lehr secret edit`, and commit it",
            )
        if secret.backend is SecretBackend.SOPS:
            return self._of_sops(found, secret)
        content = age.decrypt(found, identities(self._environment, self._state), secret.place)
        if not secret.key:
            return content
        return picked(document_in(content, secret.place), secret.key, secret.place)

    def _of_sops(self, content: bytes, secret: Secret) -> bytes:
        as_json = bool(secret.key)
        decrypted = decrypt(content, secret.place, self._environment, as_json=as_json)
        if not as_json:
            return decrypted
        try:
            document = msgspec.json.decode(decrypted)
        except msgspec.DecodeError:
            # Not chained: the message may quote its input.
            raise StalledError(f"sops did not return JSON for {secret.place}", code="SEC124") from None
        return picked(document, secret.key, secret.place)


def _file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError as error:
        # The secrets may be put there shortly after Lehr starts.
        raise TransientError(
            f"the secret {path} does not exist", code="SEC125", fix="create it, or fix the path"
        ) from error
    except OSError as error:
        raise TransientError(
            f"the secret {path} cannot be read", code="SEC126", why=error.strerror or ""
        ) from error
    if len(content) > _MOST_BYTES:
        raise StalledError(f"the secret {path} is larger than {_MOST_BYTES:,} bytes", code="SEC127")
    return content


# --- SOPS, by its command, which manages its own keys and key services -----------

_SECONDS = 30.0
_LONGEST = 300
_FORMATS = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".env": "dotenv", ".ini": "ini"}


def decrypt(content: bytes, place: str, environment: Mapping[str, str], *, as_json: bool) -> bytes:
    """The decrypted content of file `place`. Blocks for as long as its key services take.

    Args:
        content: the ciphertext.
        environment: environment of the command, which finds its keys through it.
        as_json: return a document as JSON, regardless of its own format.

    Raises:
        StalledError: `sops` is not installed.
        TransientError: `sops` fails to decrypt this, or takes too long.
    """
    program = shutil.which("sops", path=environment.get("PATH"))
    if program is None:
        raise StalledError(
            f"{place} is encrypted with SOPS, but there is no `sops` in PATH",
            code="SEC130",
            fix="install sops 3.7 or newer",
        )
    form = _FORMATS.get(PurePosixPath(place).suffix, "binary")
    # The ciphertext may be written to disk: it is in git.
    with tempfile.NamedTemporaryFile(prefix="lehr-", suffix=PurePosixPath(place).suffix) as file:
        file.write(content)
        file.flush()
        arguments = [
            "--decrypt",
            "--input-type",
            form,
            "--output-type",
            "json" if as_json else form,
            file.name,
        ]
        try:
            done = subprocess.run(
                [program, *arguments],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            # Not chained: that exception holds the output so far.
            raise TransientError(
                f"sops took more than {_SECONDS:g} seconds to decrypt {place}", code="SEC131"
            ) from None
        except OSError as error:
            raise TransientError("sops cannot be started", code="SEC132", why=error.strerror or "") from error
    if done.returncode:
        output = done.stderr.decode(errors="replace").replace(file.name, place).split()
        raise TransientError(
            f"sops did not decrypt {place} (exit code {done.returncode})",
            code="SEC133",
            why=" ".join(output)[:_LONGEST],
            fix="run `sops --decrypt` on it as the user that runs Lehr",
        )
    return done.stdout
