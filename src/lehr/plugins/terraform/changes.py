"""Carries out a provider's plan: creates, changes, replaces or destroys a resource."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from msgspec.structs import replace

from lehr.base.clock import Clock
from lehr.base.errors import LehrError, StalledError, TransientError, WaitingError
from lehr.model.diff import Diff
from lehr.model.operation import Outcome, Result
from lehr.plugins.terraform.differences import differences
from lehr.plugins.terraform.errors import Meaning, described, errors, meaning
from lehr.plugins.terraform.finding import NOTHING, Observed, Sought, new_handle, read_known
from lehr.plugins.terraform.handle import TerraformHandle
from lehr.plugins.terraform.intent import configuration
from lehr.plugins.terraform.observe import identity
from lehr.plugins.terraform.provider import (
    UNKNOWN,
    Applied,
    Diagnostic,
    Planned,
    Provider,
    ProviderError,
    ProviderGoneError,
    State,
    Value,
)
from lehr.plugins.terraform.providers import last_words
from lehr.plugins.terraform.values.canonical import has_unknown
from lehr.plugins.terraform.values.proposed import proposed_new
from lehr.sdk.plugin import Push
from lehr.sdk.secrets import Hidden

FIRST_POLL, LONGEST_POLL = 0.05, 5.0


class Compared(NamedTuple):
    """A resource next to intent.

    Attributes:
        sought: what was looked for; `sought.config` is what the plan was made with.
        planned: None if the resource should not exist.
        diff: between `observed` and `planned`.
    """

    sought: Sought
    observed: Observed
    planned: Planned | None
    diff: Diff


class Carrier:
    """One push.

    Args:
        compare: looks again, with the handle that it is given; lost pushes do not matter to it.
        keep: keeps the secrets that the provider has made, by attribute; returns one line on where.
        settle_seconds: how long it looks for what it has done.
    """

    def __init__(
        self,
        provider: Provider,
        clock: Clock,
        push: Push,
        compare: Callable[[TerraformHandle], Awaitable[Compared]],
        keep: Callable[[Value], Awaitable[str]],
        settle_seconds: float,
    ) -> None:
        self._provider = provider
        self._clock = clock
        self._push = push
        self._compare = compare
        self._keep = keep
        self._settle_seconds = settle_seconds

    async def destroy(self, now: Compared) -> None:
        """Destroy the resource, and wait until it is gone.

        Raises:
            LehrError: it is still there.
            ProviderGoneError: it may be.
        """
        self._push.progress("destroying")
        type, prior = now.sought.resource.type, now.observed.state
        planned = Planned(None, prior.private)
        try:
            if self._provider.schema.plan_destroy:
                planned = await self._provider.plan(type, prior, None, None)
            applied = await self._provider.apply(type, prior, planned, None)
        except ProviderError as error:
            applied = Applied(prior, error.diagnostics)
        if errors(applied.diagnostics):
            raise _error_of_change(f"the {type} cannot be destroyed", applied.diagnostics, self._hidden(now))
        deadline, pause = self._clock.monotonic() + self._settle_seconds, FIRST_POLL
        sought = now.sought._replace(handle=now.observed.handle)
        while (await read_known(self._provider, sought)).value is not None:
            if self._clock.monotonic() >= deadline:
                raise TransientError(
                    f"the {type} {identity(prior.value)} is still there after it was destroyed",
                    code="TER118",
                    why="the provider reported that it has destroyed the resource, and still reads it",
                )
            await self._clock.sleep(pause)
            pause = min(2 * pause, LONGEST_POLL)

    async def create(self, now: Compared) -> Outcome:
        """Create the resource, whose plan is made for nothing that is there.

        An outcome without a resource forgets the handle: it may be that of one which was just destroyed.
        """
        self._push.progress("creating")
        id = self._push.operation.id
        sought = now.sought._replace(
            config=configuration(
                now.sought.schema.block, now.sought.intended, (now.sought.intended.provider.operation_tag, id)
            )
        )
        try:
            applied = await self._applied(sought, NOTHING)
        except ProviderGoneError as error:
            message = f"the provider has ended: {last_words(error, self._hidden(now))}"
            return Outcome(Result.UNKNOWN, message, handle="")
        if applied.state.value is None:
            return replace(self._not_created(now, applied), handle="")
        failed = bool(errors(applied.diagnostics))
        handle = new_handle(
            sought,
            applied.state,
            now.sought.resource.import_ or "",
            tainted=id if failed else "",
        )
        if failed:
            return _failed(
                f"created with an error: {described(errors(applied.diagnostics), self._hidden(now))}", handle
            )
        try:
            kept = await self._keep(applied.state.value)
        except StalledError as error:
            return Outcome(Result.STALLED, str(error), handle=replace(handle, tainted=id).text())
        if kept:
            self._push.progress(kept)
        return await self._settled(handle)

    async def change(self, now: Compared) -> Outcome:
        """Change the resource in its place.

        A provider whose answer is what it had planned is not asked again: the next diff looks.
        """
        self._push.progress("changing")
        assert now.planned is not None  # as only of what should not exist
        prior, known = now.observed.state, now.observed.handle
        try:
            applied = await self._provider.apply(
                now.sought.resource.type, prior, now.planned, now.sought.config
            )
        except ProviderGoneError as error:
            return Outcome(Result.UNKNOWN, f"the provider has ended: {last_words(error, self._hidden(now))}")
        except ProviderError as error:
            applied = Applied(prior, error.diagnostics)
        if errors(applied.diagnostics):
            changed = _error_of_change("it cannot be changed", applied.diagnostics, self._hidden(now))
            stalled = isinstance(changed, StalledError)
            # What was applied is not known, so the records stay as they were: the rest is still a difference.
            private = applied.state.private or known.private
            return Outcome(
                Result.STALLED if stalled else Result.FAILED,
                str(changed),
                handle=replace(known, private=private).text(),
            )
        handle = new_handle(now.sought, applied.state, known.import_id)
        if _is_as_planned(now, applied):
            return Outcome(Result.DONE, handle=handle.text())
        return await self._settled(handle)

    async def _applied(self, sought: Sought, prior: State) -> Applied:
        type, block = sought.resource.type, sought.schema.block
        try:
            proposed = proposed_new(block, prior.value, sought.config)
            planned = await self._provider.plan(type, prior, proposed, sought.config)
            return await self._provider.apply(type, prior, planned, sought.config)
        except ProviderError as error:
            return Applied(prior, error.diagnostics)

    def _not_created(self, now: Compared, applied: Applied) -> Outcome:
        type, hidden = now.sought.resource.type, self._hidden(now)
        why = described(errors(applied.diagnostics), hidden)
        kind = meaning(applied.diagnostics)
        if not errors(applied.diagnostics) or kind is Meaning.UNANSWERED:
            what = f"the provider does not know whether the {type} was created"
            return Outcome(Result.UNKNOWN, f"{what}: {why}" if why else what)
        if kind is Meaning.EXISTS and now.sought.resource.import_ is None:
            fix = "to adopt what exists, add `import: ID`"
            return Outcome(Result.STALLED, f"a {type} with this name exists: {why} ({fix})")
        error = _error_of_change(f"the {type} cannot be created", applied.diagnostics, hidden)
        result = Result.STALLED if isinstance(error, StalledError) else Result.FAILED
        return Outcome(result, str(error))

    async def _settled(self, handle: TerraformHandle) -> Outcome:
        """Look until the resource is as intended."""
        deadline, pause = self._clock.monotonic() + self._settle_seconds, FIRST_POLL
        text = handle.text()
        while True:
            found: Diff | LehrError
            try:
                found = (await self._compare(handle)).diff
                if found.empty:
                    return Outcome(Result.DONE, handle=text)
            except StalledError as error:
                return Outcome(Result.STALLED, str(error), handle=text)
            except (TransientError, WaitingError) as error:
                found = error
            if self._clock.monotonic() >= deadline:
                if isinstance(found, LehrError):
                    return Outcome(
                        Result.UNKNOWN, f"it was applied, and cannot be read: {found}", handle=text
                    )
                return _failed(f"it was applied, and still differs: {found.summary()}", handle)
            await self._clock.sleep(pause)
            pause = min(2 * pause, LONGEST_POLL)

    def _hidden(self, now: Compared) -> Hidden:
        block, state = now.sought.schema.block, now.observed.state
        planned = None if now.planned is None else now.planned.value
        return now.sought.intended.secrecy(block, state.value, now.sought.config, planned).hidden


def _is_as_planned(now: Compared, applied: Applied) -> bool:
    """Whether a resource has become what was planned. Values unknown in the plan may be anything."""
    assert now.planned is not None
    if applied.state.value is None:
        return False
    found = differences(now.sought.schema.block, now.planned.value, applied.state.value)
    return all(item.before is UNKNOWN and not has_unknown(item.after) for item in found)


def _failed(message: str, handle: TerraformHandle) -> Outcome:
    return Outcome(Result.FAILED, message, handle=handle.text())


def _error_of_change(what: str, diagnostics: tuple[Diagnostic, ...], hidden: Hidden) -> LehrError:
    why = described(errors(diagnostics), hidden)
    kind = meaning(diagnostics)
    if kind is Meaning.REFUSED:
        return StalledError(
            what,
            code="TER119",
            why=why,
            fix="give the provider's credentials the permission, then `lehr retry`",
        )
    return TransientError(what, code="TER120", why=why)
