"""The rules of handles, by which a plugin finds its production again. Other plugins cannot break them."""

from __future__ import annotations

from msgspec import UNSET

from lehr.base.errors import StalledError
from lehr.model.handle import excess
from lehr.testing.conformance.asset_plugin.subject import Aim, Subject, applied_rule, rule
from lehr.testing.conformance.rules import hold


@applied_rule
async def a_handle_lasts(subject: Subject) -> None:
    """A new process finds its production by the handle, and looks do not change it."""
    handle = subject.handle
    hold(not excess(handle), f"no handle is too long, unlike {excess(handle)}")
    await subject.restart()
    for _ in range(2):
        found = await subject.diff(subject.asset)
        hold(found.empty, f"production is found by its handle, with an empty diff, unlike {found.changes}")
        hold(found.handle in (UNSET, handle), f"a look keeps the handle {handle!r}, not {found.handle!r}")


@rule
async def what_was_made_is_found_without_its_handle(subject: Subject) -> None:
    """By the id of the push that made it; or the plugin stalls, and asks for `import:` in intent."""
    push = subject.begin(Aim(subject.asset))
    outcome = await subject.push(subject.asset, push=push)
    if outcome.handle is UNSET:
        return
    await subject.restart()
    subject.lose(push.operation)
    try:
        found = await subject.diff(subject.asset)
    except StalledError as error:
        hold("import:" in error.fix, f"a plugin that cannot find it asks for `import:`, not {error.fix!r}")
        return
    hold(found.empty, f"the work of a lost push is found, with an empty diff, unlike {found.changes}")
    hold(found.handle == outcome.handle, f"its handle is {outcome.handle!r} again, not {found.handle!r}")
