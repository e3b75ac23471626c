"""Workers that generate the assets of a workspace."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lehr.wiring.deployment import MEMO_FILE, Deployment
from lehr.wiring.stores import has_store

if TYPE_CHECKING:
    from lehr.generate.engine.client import GenerationWorker
    from lehr.sdk.generation import Generation

_CLOSE_SECONDS = 5.0


def generation(
    environment: Mapping[str, str] | None = None, state: Path | None = None, *, keeps: bool = True
) -> GenerationWorker:
    """A generation worker that knows the types of `registry`.

    Args:
        environment: variables in which its process differs from all other workers.
        state: folder in which it keeps its results, for its successors; None to keep nothing.
        keeps: False to only read the results of others from `state`.
    """
    from lehr.base.blocking import Threads
    from lehr.generate.engine.client import GenerationWorker

    memo = None if state is None else state / MEMO_FILE
    threads = Threads("generate", 1)
    return GenerationWorker("lehr.wiring:registry", threads, memo=memo, keeps=keeps, environment=environment)


@contextlib.asynccontextmanager
async def generation_of_run(
    deployment: Deployment, store_address: str | None
) -> AsyncIterator[GenerationWorker]:
    """That of a control plane. It starts at once if the workspace is new, because then it will be needed."""
    generating = generation(state=deployment.state)
    try:
        if _is_new(deployment, store_address):
            await generating.begin()
        yield generating
    finally:
        await end(generating)


async def end(generating: Generation) -> None:
    """Close it; one that hangs is abandoned."""
    import asyncio

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await generating.close()


def _is_new(deployment: Deployment, store_address: str | None) -> bool:
    """Whether it is a workspace that probably was never published."""
    from lehr.control.state_folder import WORKSPACE_FILE

    folder = Path(deployment.location).expanduser() / deployment.path
    return store_address is None and not has_store(deployment.state) and (folder / WORKSPACE_FILE).is_file()
