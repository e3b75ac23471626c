"""Resources of the real AWS provider, pushed by the plugin: no diff afterwards, and none is made twice."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Diff, Target
from lehr.model.operation import Outcome, Result
from lehr.plugins.terraform.launch import Launcher
from lehr.plugins.terraform.payload import (
    TERRAFORM_PROVIDER,
    TERRAFORM_RESOURCE,
    TerraformProvider,
    TerraformResource,
)
from lehr.plugins.terraform.plugin import TerraformPlugin
from lehr.testing.plugins import FixedReader, push_of, target_of
from lehr.validate.secrets import secrets_in
from tests.terraform import aws
from tests.terraform.assets import REGISTRY, SECRETS
from tests.terraform.aws_cases import CASES

pytestmark = pytest.mark.timeout(600)

CONFIG: dict[str, Any] = {
    "region": "us-east-1",
    "access_key": "test",
    "secret_key": "test",
    "skip_credentials_validation": True,
    "skip_metadata_api_check": True,
    "skip_requesting_account_id": True,
    "s3_use_path_style": True,
}
FORGOTTEN = {
    ("aws_iam_user", 2),
    ("aws_db_parameter_group", 1),
    ("aws_launch_template", 0),
}
"""Types and steps whose tags or parameters moto forgets or mixes up: `terraform` has a diff as well."""

_SCOPE = (
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=0"
)


class Enforced:
    """A plugin over the real provider, and the handle that it has of one asset after another."""

    def __init__(self, address: str) -> None:
        program = aws.provider_program()
        payload = TerraformProvider(
            path=str(program),
            sha256=aws.sha256(program),
            config=CONFIG,
            environment={"AWS_ENDPOINT_URL": address},
            calls_per_second=1000,
            concurrency=20,
            operation_tag="tags",
        )
        self._provider = make_asset(AssetId("cloud/aws"), TERRAFORM_PROVIDER, payload, {})
        clock = SystemClock()
        self.plugin = TerraformPlugin(
            clock,
            Launcher(Path("/"), Inline(), clock).start,
            Inline(),
            secrets=SECRETS,
            secrets_in=secrets_in,
            settle_seconds=30.0,
            visible_seconds=0.0,
            linger_seconds=0.0,
        )
        self._handles: dict[AssetId, str] = {}

    async def diff(self, asset: Asset, *, lost: str = "") -> Diff:
        target, reader = self._known(asset, lost)
        found = await self.plugin.diff(target, reader)
        self._keep(asset, found.handle)
        return found

    async def push(self, asset: Asset, id: str, diff: Diff, *, lost: str = "") -> Outcome:
        target, reader = self._known(asset, lost)
        outcome = await self.plugin.push(target, reader, push_of(target, id, diff=diff))
        self._keep(asset, outcome.handle)
        return outcome

    def _known(self, asset: Asset, lost: str) -> tuple[Target, FixedReader]:
        target = replace(target_of(asset), handle=self._handles.get(asset.id, ""), lost=lost)
        return target, FixedReader([asset, self._provider], REGISTRY)

    def _keep(self, asset: Asset, handle: Any) -> None:
        if handle is not UNSET:
            self._handles[asset.id] = handle


@contextlib.asynccontextmanager
async def enforced(address: str) -> AsyncIterator[Enforced]:
    one = Enforced(address)
    try:
        yield one
    finally:
        await one.plugin.close()


def resource(type: str, config: dict[str, Any], import_: str | None = None) -> Asset:
    payload = TerraformResource(provider="cloud/aws", type=type, config=config, import_=import_)
    return make_asset(AssetId(f"it/{type}"), TERRAFORM_RESOURCE, payload, {})


async def _versions(one: Enforced, type: str) -> list[str]:
    """Push each version of a resource; returns what was wrong."""
    wrong: list[str] = []
    for step, config in enumerate(CASES[type]):
        if (type, step) in FORGOTTEN:
            break
        asset, place = resource(type, config), f"{type}, step {step}"
        before = await one.diff(asset)
        outcome = await one.push(asset, f"push-{step}", before)
        if outcome.result is not Result.DONE:
            return [*wrong, f"{place}: {outcome}"]
        after = await one.diff(asset)
        if not after.empty:
            wrong.append(f"{place}: {after}")
    return wrong


def test_after_each_push_there_is_no_diff() -> None:
    async def run(address: str) -> None:
        async with enforced(address) as one:
            found = await asyncio.gather(*(_versions(one, type) for type in CASES))
        assert "\n".join(text for texts in found for text in texts) == ""

    aws.provider_program()
    with aws.moto() as address:
        asyncio.run(run(address))


class Creation(NamedTuple):
    """A resource whose creation is interrupted.

    Attributes:
        request: part of the request that creates it.
        service, listing: the service, and its action that lists such resources.
        element: what each of them has in the answer, once.
        known: whether Lehr finds it again by itself: by its import id or by a tag.
    """

    type: str
    config: dict[str, Any]
    request: bytes
    service: str
    listing: str
    element: str
    import_: str | None = None
    known: bool = True


_ROLE = {"name": "lehr", "assume_role_policy": CASES["aws_iam_role"][0]["assume_role_policy"]}
_TOPIC = "arn:aws:sns:us-east-1:123456789012:lehr"
CREATIONS = (
    Creation("aws_iam_role", _ROLE, b"Action=CreateRole", "iam", "ListRoles", "<RoleName>lehr<", "lehr"),
    Creation(
        "aws_sns_topic", {"name": "lehr"}, b"Action=CreateTopic", "sns", "ListTopics", "<TopicArn>", _TOPIC
    ),
    Creation(
        "aws_vpc",
        {"cidr_block": "10.9.0.0/16"},
        b"Action=CreateVpc",
        "ec2",
        "DescribeVpcs",
        "<isDefault>false<",
    ),
    Creation(
        "aws_ebs_volume",
        {"availability_zone": "us-east-1a", "size": 1},
        b"Action=CreateVolume",
        "ec2",
        "DescribeVolumes",
        "<createTime>",
    ),
    Creation(
        "aws_sqs_queue",
        {"name": "lehr"},
        b"AmazonSQS.CreateQueue",
        "sqs",
        "ListQueues",
        "<QueueUrl>",
        known=False,
    ),
)

_VERSIONS = {"iam": "2010-05-08", "sns": "2010-03-31", "ec2": "2016-11-15", "sqs": "2012-11-05"}


def _count(address: str, creation: Creation) -> int:
    form = urllib.parse.urlencode({"Action": creation.listing, "Version": _VERSIONS[creation.service]})
    headers = {"Authorization": _SCOPE.format(creation.service)}
    with urllib.request.urlopen(
        urllib.request.Request(address, form.encode(), headers), timeout=60
    ) as answer:
        return str(answer.read().decode()).count(creation.element)


class Killing:
    """A way to AWS on which the provider is killed once it sends a certain request.

    Args:
        target: port of AWS.
        trigger: a part of the request.
        carried_out: whether AWS still gets the request, and answers it.
    """

    def __init__(self, target: int, trigger: bytes, *, carried_out: bool) -> None:
        self._target = target
        self._trigger = trigger
        self._carried_out = carried_out
        self._seen = False
        self.killed = False
        self._connections: set[asyncio.Task[Any]] = set()

    @contextlib.asynccontextmanager
    async def address(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        answers = asyncio.ensure_future(self._answers(there, writer))
        try:
            while data := await reader.read(1 << 16):
                self._seen = self._seen or self._trigger in data
                if self._seen and not self._carried_out and not self.killed:
                    self._kill()
                    break
                back.write(data)
        except ConnectionError:
            pass
        finally:
            back.close()
            await asyncio.gather(answers, return_exceptions=True)
            writer.close()

    async def _answers(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await there.read(1 << 16):
            if self._seen:
                self._kill()
            writer.write(data)

    def _kill(self) -> None:
        if not self.killed:
            self.killed = True
            os.kill(_provider_process(), signal.SIGKILL)


def _provider_process() -> int:
    name = aws.provider_program().name.encode()
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdecimal() and name in (folder / "cmdline").read_bytes():
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == os.getpid():
                    return int(folder.name)
    raise AssertionError("no provider runs")


async def _interrupted(port: int, creation: Creation, *, carried_out: bool) -> None:
    asset = resource(creation.type, creation.config, creation.import_)
    address = f"http://127.0.0.1:{port}"
    way = Killing(port, creation.request, carried_out=carried_out)
    async with way.address() as through, enforced(through) as one:
        outcome = await one.push(asset, "push-1", await one.diff(asset))
        assert way.killed
        assert outcome.result is Result.UNKNOWN
        assert _count(address, creation) == carried_out
        if not creation.known:
            with pytest.raises(StalledError, match="may have created"):
                await one.diff(asset, lost="push-1")
            assert _count(address, creation) == carried_out
            return
        found = await one.diff(asset, lost="push-1")
        if not found.empty:
            assert (await one.push(asset, "push-2", found, lost="push-1")).result is Result.DONE
        assert (await one.diff(asset)).empty
    assert _count(address, creation) == 1


@pytest.mark.parametrize("carried_out", [True, False], ids=["carried_out", "lost"])
@pytest.mark.parametrize("creation", CREATIONS, ids=lambda creation: str(creation.type))
def test_a_provider_that_is_killed_in_a_creation_makes_nothing_twice(
    creation: Creation, carried_out: bool
) -> None:
    aws.provider_program()
    with aws.moto() as address:
        asyncio.run(_interrupted(int(address.rpartition(":")[2]), creation, carried_out=carried_out))
