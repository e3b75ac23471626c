"""Checks that a commit is signed by one of the allowed keys: SSH keys and OpenPGP keys.

git itself verifies, with only the allowed keys: the keyring and the configuration of the user that Lehr runs
as are ignored, and no key is ever fetched.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from lehr.base.digest import short
from lehr.base.errors import StalledError, raised_as
from lehr.sources.command import public, run_git

_ARMOUR = re.compile(r"-----BEGIN PGP PUBLIC KEY BLOCK-----.*?-----END PGP PUBLIC KEY BLOCK-----", re.DOTALL)
_SSH_TYPE = re.compile(r"(sk-)?(ssh|ecdsa)-[a-z0-9-]+(@openssh\.com)?")
_IMPORTED = re.compile(r"^\[GNUPG:\] IMPORT_OK \d+ ([0-9A-F]{40,64})$", re.MULTILINE)
_GPG_CONFIGURATION = """\
trust-model always
no-autostart
disable-dirmngr
no-auto-key-retrieve
no-auto-key-locate
"""
_FOR_GIT = 'namespaces="git"'
"""Supported options of `allowed_signers` lines for commits. Any other would be lost, so it is refused."""

_SECONDS = 30.0
_FORMAT = "--format=%G?%x00%GF%x00%GP%x00%GK%x00%an <%ae>"
_REASONS = {
    "N": "it has no signature",
    "B": "its signature is not valid: the commit was changed or forged",
    "X": "its signature has expired",
    "Y": "it is signed with an expired key",
    "R": "it is signed with a revoked key",
}


class SshKey(msgspec.Struct, frozen=True):
    """A public key as OpenSSH writes it: `TYPE BASE64 [COMMENT]`."""

    type: str
    blob: str
    comment: str

    @property
    def fingerprint(self) -> str:
        """`SHA256:...`, as `ssh-keygen -l` shows it."""
        digest = hashlib.sha256(base64.b64decode(self.blob)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    def __str__(self) -> str:
        return f"{self.fingerprint} ({self.comment})" if self.comment else self.fingerprint


class Signers:
    """Keys, one of which must have signed a commit.

    Args:
        keys: public keys: one SSH key each, or OpenPGP keys in armor.

    Raises:
        StalledError: one of them is not a public key, or there are none.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._ssh: list[SshKey] = []
        self._armour: list[str] = []
        for key in keys:
            if _ARMOUR.fullmatch(key.strip()):
                self._armour.append(key.strip())
            else:
                self._ssh.append(_ssh_key(key))
        if not self._ssh and not self._armour:
            raise StalledError(
                "no signing keys are allowed",
                code="SRC146",
                why="no commit could be read",
                fix="name at least one",
            )

    def require(self, repository: Path, commit: str, location: str) -> None:
        """Check that an allowed key has signed `commit`. Blocks.

        Args:
            repository: a bare repository that has the commit.
            location: where it comes from, for messages.

        Raises:
            StalledError: none has, or it cannot be verified here.
        """
        with tempfile.TemporaryDirectory(prefix="lehr-") as scratch:
            home = Path(scratch)
            fingerprints = self._prepare(home)
            settings = {
                "gpg.ssh.allowedSignersFile": str(home / "allowed"),
                "gpg.ssh.revocationFile": "",
                "gpg.ssh.program": "ssh-keygen",
                "gpg.program": "gpg",
                "gpg.openpgp.program": "gpg",
                "gpg.x509.program": "/dev/null",  # its keys are the user's, which would all be allowed
                "gpg.minTrustLevel": "undefined",
                "log.showSignature": "false",
            }
            options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
            output = run_git(
                [f"--git-dir={repository}", *options, "log", "-1", "--no-notes", _FORMAT, commit, "--"],
                timeout=_SECONDS,
                location=location,
                variables={"GNUPGHOME": str(home), "GIT_NO_REPLACE_OBJECTS": "1"},
            )
        verdict, own, primary, key, author = output.decode(errors="replace").rstrip("\n").split("\0")
        if verdict == "G" and {own, primary} & fingerprints.keys():
            return
        unlisted = f"it is signed with the key {key or own}, which is not listed" if key or own else ""
        reason = _REASONS.get(verdict) or unlisted or "its signature is of an unsupported kind"
        raise StalledError(
            f"the commit {short(commit)} of {public(location)} is not signed by an allowed key",
            code="SRC147",
            why=f"{author} made it, and {reason}",
            fix=f"sign it with one of these keys: {', '.join(fingerprints.values())}; until then the "
            "last incarnation stays in force",
        )

    def _prepare(self, home: Path) -> dict[str, str]:
        """Write the keys where git finds them. Returns the name of each by its fingerprint."""
        lines = (f'key namespaces="git" {key.type} {key.blob}\n' for key in self._ssh)
        (home / "allowed").write_text("".join(lines))
        if self._ssh:
            _require_program("ssh-keygen", "OpenSSH")
        known = {key.fingerprint: str(key) for key in self._ssh}
        if self._armour:
            _require_program("gpg", "GnuPG")
            (home / "gpg.conf").write_text(_GPG_CONFIGURATION)
            known |= {fingerprint: fingerprint for fingerprint in self._import(home)}
        return known

    def _import(self, home: Path) -> list[str]:
        command = ["gpg", "--homedir", str(home), "--batch", "--no-tty", "--status-fd", "1", "--import"]
        try:
            output = subprocess.run(
                command,
                input="\n".join(self._armour).encode(),
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as err:
            raise StalledError(
                "gpg did not finish",
                code="SRC148",
                why="it hangs",
                fix="check whether gpg works on this machine",
            ) from err
        found = _IMPORTED.findall(output.stdout.decode(errors="replace"))
        if not found or output.returncode:
            raise StalledError(
                "an allowed OpenPGP key cannot be read",
                code="SRC149",
                why=output.stderr.decode(errors="replace").strip()[-300:],
                fix="export it again: gpg --armor --export KEY",
            )
        return found


def keys_in(text: str) -> tuple[str, ...]:
    """The public keys in a file: lines of SSH keys, as in `authorized_keys`, and armored OpenPGP keys.

    Lines of an `allowed_signers` file, which start with the signer's name, are also accepted.
    """
    lines = (line.strip() for line in _ARMOUR.sub("", text).splitlines())
    return (*_ARMOUR.findall(text), *(line for line in lines if line and not line.startswith("#")))


def signers_in(path: Path) -> Signers:
    """Signers with the keys in the file at `path`.

    Raises:
        StalledError: it cannot be read, or holds something else.
    """
    fix = "name a file of public keys that may sign: lines of SSH keys, or OpenPGP keys in armor"
    failures = (OSError, UnicodeDecodeError)
    with raised_as(StalledError, f"{path} cannot be read", code="SRC150", fix=fix, on=failures):
        text = path.expanduser().read_text()
    return Signers(keys_in(text))


class SignersFile:
    """The keys in a file, read again for each commit, so that added and removed keys take effect at once.

    Raises:
        StalledError: the file cannot be read, or holds something else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        signers_in(path)

    def require(self, repository: Path, commit: str, location: str) -> None:
        """Check that an allowed key has signed `commit`, as `Signers.require` does."""
        signers_in(self._path).require(repository, commit, location)


def _ssh_key(text: str) -> SshKey:
    words = [word for word in text.split() if word != _FOR_GIT]
    named = len(words) > 2 and "=" not in words[0] and not _SSH_TYPE.fullmatch(words[0])
    if named and _SSH_TYPE.fullmatch(words[1]):
        words = [*words[1:3], words[0]]
    try:
        kind, blob = words[:2]
        content = base64.b64decode(blob, validate=True)
        if _SSH_TYPE.fullmatch(kind) and content[4 : 4 + content[3]] == kind.encode():
            return SshKey(kind, blob, " ".join(words[2:]))
    except (ValueError, IndexError, binascii.Error):
        pass
    shown = text if len(text) < 40 else f"{text[:40]}..."
    raise StalledError(
        f"{shown!r} is not a public key",
        code="SRC151",
        why="an SSH key has the form TYPE BASE64 [COMMENT]; an OpenPGP key is in armor",
        fix="take it from ~/.ssh/id_ed25519.pub, or from gpg --armor --export KEY",
    )


def _require_program(name: str, package: str) -> None:
    if shutil.which(name) is None:
        raise StalledError(
            f"the command {name} is not installed",
            code="SRC152",
            why="Lehr uses it to verify signatures of commits",
            fix=f"install {package}",
        )
