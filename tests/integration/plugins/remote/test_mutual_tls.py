"""A plugin with a life cycle of its own, over mutual TLS: both sides prove who they are."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import TransientError
from lehr.model.types import Registry
from lehr.plugins.grpc_library import grpc
from lehr.plugins.remote.channel import Tls
from lehr.plugins.remote.connection import Connection
from lehr.plugins.remote.given import GivenSecrets
from lehr.plugins.remote.opening import Attached
from lehr.plugins.remote.service import Served, Service
from tests.integration.plugins.remote.line_plugin import TYPES, LinePlugin

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="NO OPENSSL: nothing real was tested here; install openssl"
)


def openssl(folder: Path, command: str) -> None:
    subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)


def certificate(folder: Path, name: str, authority: str) -> None:
    """`NAME.pem` and `NAME.key`, signed by an authority."""
    (folder / f"{name}.ext").write_text(f"subjectAltName=DNS:{name}\n")
    openssl(folder, f"req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}")
    signed_by = f"-CA {authority}.pem -CAkey {authority}.key -CAcreateserial"
    openssl(folder, f"x509 -req -in {name}.csr {signed_by} -days 2 -out {name}.pem -extfile {name}.ext")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority that has signed plugin and Lehr, and another one that has signed a stranger."""
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("authority", "another"):
        new = f"req -x509 -newkey rsa:2048 -nodes -days 2 -keyout {name}.key -out {name}.pem"
        openssl(folder, f"{new} -subj /CN={name}")
    for name, authority in (
        ("plugin.test", "authority"),
        ("lehr.test", "authority"),
        ("stranger", "another"),
    ):
        certificate(folder, name, authority)
    return folder


def tls(folder: Path, name: str, *, expects: str = "plugin.test") -> Callable[[], Awaitable[Tls]]:
    async def read() -> Tls:
        return Tls(
            (folder / "authority.pem").read_bytes(),
            (folder / f"{name}.pem").read_bytes(),
            (folder / f"{name}.key").read_bytes(),
            expects,
        )

    return read


@asynccontextmanager
async def serving(folder: Path, name: str) -> AsyncIterator[str]:
    """The address of a plugin that only talks to those whom `authority` has signed."""
    server = grpc.aio.server()
    served = Served("lines", "1.2", LinePlugin(GivenSecrets()), Registry(TYPES))
    server.add_generic_rpc_handlers((Service(served).handlers(),))
    credentials = grpc.ssl_server_credentials(
        [((folder / f"{name}.key").read_bytes(), (folder / f"{name}.pem").read_bytes())],
        (folder / "authority.pem").read_bytes(),
        require_client_auth=True,
    )
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


async def version(address: str, read: Callable[[], Awaitable[Tls]]) -> str:
    opened = Connection("lines", Attached(address, read), SystemClock())
    try:
        return str((await opened.describe()).version)
    finally:
        await opened.close()


def test_both_sides_have_to_be_who_they_should(certificates: Path) -> None:
    async def scenario() -> str:
        async with serving(certificates, "plugin.test") as address:
            return await version(address, tls(certificates, "lehr.test"))

    assert asyncio.run(scenario()) == "1.2"


@pytest.mark.parametrize(
    ("plugin", "lehr", "expects"),
    [
        ("plugin.test", "lehr.test", "another.test"),
        ("stranger", "lehr.test", "stranger"),
        ("plugin.test", "stranger", "plugin.test"),
    ],
    ids=["another name", "a strange plugin", "a strange client"],
)
def test_others_are_refused(certificates: Path, plugin: str, lehr: str, expects: str) -> None:
    async def scenario() -> None:
        async with serving(certificates, plugin) as address:
            with pytest.raises(TransientError, match="has not answered Describe"):
                await version(address, tls(certificates, lehr, expects=expects))

    asyncio.run(scenario())
