"""SOPS, through the `sops` command if installed. It manages its own keys and key services."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import PurePosixPath

from lehr.base.errors import StalledError, TransientError

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
            f"{place} is encrypted with SOPS, and there is no `sops` in PATH",
            code="SEC130",
            fix="install it, version 3.7 or newer",
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
        said = done.stderr.decode(errors="replace").replace(file.name, place).split()
        raise TransientError(
            f"sops did not decrypt {place} (exit code {done.returncode})",
            code="SEC133",
            why=" ".join(said)[:_LONGEST],
            fix="run `sops --decrypt` on it as the user that runs Lehr",
        )
    return done.stdout
