"""Publishing with validators of a plugin: they refuse, are retried, and are asked only where it matters."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from lehr.base.blocking import Blocking, Threads
from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Severity
from lehr.base.errors import LehrError, TransientError
from lehr.model.asset import AssetId
from lehr.model.attempt import Attempt, Publication
from lehr.model.incarnation import AssetChange
from lehr.plugins.remote import validator as remote_validator
from lehr.plugins.remote.connection import Connection
from lehr.plugins.remote.validator import RemoteValidator
from lehr.sdk.asked_validator import AskedValidator, Finding
from lehr.sdk.validator import Proposal, WhenDown
from tests.integration.plugins.remote.managed import connection
from tests.integration.test_publisher import Place, codes, play


def sites(place: Place, **hosts: str) -> None:
    """Notes, whose names and hosts a plugin judges."""
    schema = "{type: object, additionalProperties: true}"
    place.write("types/site.yaml", f"name: shop.Site\nschema: {schema}\nreferences: {{/host: {{}}}}\n")
    texts = [
        f"- id: {id}\n  type: shop.Site\n  payload:\n    owner: mira\n    host: {host}\n    name: {name}\n"
        for id, host, name in (
            (id, host.partition(":")[0], host.partition(":")[2]) for id, host in hosts.items()
        )
    ]
    place.write("assets/sites.yaml", "".join(texts))


def story(
    folder: Path, fault: str, scenario: Callable[[Place, Connection], Awaitable[None]], **environment: str
) -> None:
    async def main(place: Place) -> None:
        opened = connection("validator_plugin.py", [], environment, arguments=[fault] if fault else [])
        try:
            await scenario(place, opened)
        finally:
            await opened.close()

    play(folder, main)


def naming(opened: Connection, when_down: WhenDown = WhenDown.REFUSE) -> RemoteValidator:
    return RemoteValidator("naming", opened, SystemClock(), ["shop.Site"], when_down)


async def published(place: Place, *validators: AskedValidator, blocking: Blocking | None = None) -> Attempt:
    publisher = place.publishing(place.generation, asked_validators=validators, blocking=blocking)
    return await publisher.refresh()


def test_a_good_change_is_published_and_a_bad_one_points_to_its_line(tmp_path: Path) -> None:
    async def scenario(place: Place, opened: Connection) -> None:
        sites(place, web="web:web")
        attempt = await published(place, naming(opened))
        assert (attempt.publication, attempt.diagnostics) == (Publication.PUBLISHED, ())
        sites(place, web="web:web", blog="web:Blog")
        attempt = await published(place, naming(opened))
        assert attempt.publication is Publication.REFUSED
        (shown,) = attempt.diagnostics
        assert (shown.code, shown.subject) == ("naming/N001", "blog")
        assert str(shown.at) == "assets/sites.yaml:12:5"
        assert shown.excerpt is not None
        assert shown.excerpt.text == "    name: Blog"

    story(tmp_path, "", scenario)


def test_it_looks_up_what_is_stored_from_a_thread_of_its_own(tmp_path: Path) -> None:
    """Assets of the newest incarnation, changed ones, and those that refer to them."""

    async def scenario(place: Place, opened: Connection) -> None:
        threads = Threads("reading", 1)
        place.write("types/host.yaml", "name: shop.Host\nschema: {type: object}\n")
        place.write("assets/host.yaml", "{id: h1, type: shop.Host, payload: {}}\n")
        sites(place, web="h1:web")
        hosts = RemoteValidator("hosts", opened, SystemClock())
        assert (await published(place, hosts, blocking=threads)).publication is Publication.PUBLISHED
        sites(place, web="h1:web", blog="web:blog", old="h1:old")
        attempt = await published(place, hosts, blocking=threads)
        assert [(item.code, item.subject) for item in attempt.diagnostics] == [("hosts/H001", "blog")]
        (place.workspace / "assets/host.yaml").unlink()
        sites(place, web="h1:web")
        attempt = await published(place, hosts, blocking=threads)
        assert {(item.code, item.subject) for item in attempt.diagnostics} >= {
            ("hosts/H002", "web"),
            ("hosts/H003", "h1"),
        }
        threads.close()

    story(tmp_path, "", scenario)


@pytest.mark.parametrize("fault", ["dies", "no-result", "transient", "hangs", "asks-for-ever"])
def test_without_an_answer_nothing_is_published_and_it_is_retried(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_validator, "_SECONDS", 2.0)

    async def scenario(place: Place, opened: Connection) -> None:
        sites(place, web="web:web")
        for _ in range(2):
            attempt = await published(place, naming(opened))
            assert (attempt.publication, codes(attempt)) == (Publication.UNREADABLE, {"VAL080"})
            assert attempt.sequence == 0
        attempt = await published(place, naming(opened, WhenDown.WARN))
        assert attempt.publication is Publication.PUBLISHED
        assert [(item.code, item.severity) for item in attempt.diagnostics] == [("VAL080", Severity.WARNING)]

    story(tmp_path, fault, scenario)


def test_the_same_revision_is_published_once_the_plugin_answers(tmp_path: Path) -> None:
    async def scenario(place: Place, opened: Connection) -> None:
        sites(place, web="web:web")
        assert (await published(place, naming(opened))).publication is Publication.UNREADABLE
        for _ in range(100):
            attempt = await published(place, naming(opened))
            if attempt.publication is Publication.PUBLISHED:
                return
            await asyncio.sleep(0.1)
        raise AssertionError(attempt)

    story(tmp_path, "dies-once", scenario, MARK=str(tmp_path / "mark"))


class Fixed(NamedTuple):
    """A validator whose answers are in a list; the last one is for ever."""

    answers: list[Sequence[Finding] | LehrError | Exception]
    types: Collection[str] = ()
    asked: list[str] = []  # noqa: RUF012 - one for each, given by `fixed`
    name: str = "fixed"
    when_down: WhenDown = WhenDown.REFUSE

    def concerns(self, change: AssetChange) -> bool:
        return not self.types or (change.after is not None and change.after.type in self.types)

    async def ask(self, proposal: Proposal, blocking: Blocking) -> Sequence[Finding] | LehrError:
        self.asked.append(",".join(change.id for change in proposal.changes()))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception) and not isinstance(answer, LehrError):
            raise answer
        return answer


def fixed(*answers: Sequence[Finding] | LehrError | Exception, types: Collection[str] = ()) -> Fixed:
    return Fixed(list(answers), types, [])


BAD = Finding(code="N1", severity=Severity.ERROR, what="not yet")


def test_what_it_refused_is_judged_again_though_the_source_is_the_same(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a")
        validator = fixed([BAD], [BAD], [])
        publisher = place.publishing(place.generation, asked_validators=[validator])
        attempts = [await publisher.refresh() for _ in range(4)]
        assert [attempt.publication for attempt in attempts] == [
            Publication.REFUSED,
            Publication.REFUSED,
            Publication.PUBLISHED,
            Publication.UNCHANGED,
        ]
        assert validator.asked == ["a", "a", "a"]

    play(tmp_path, scenario)


def test_it_is_asked_only_where_a_change_concerns_it(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a")
        other, files = fixed([BAD], types=["shop.Site"]), fixed([], types=["lehr.File"])
        publisher = place.publishing(place.generation, asked_validators=[other, files])
        assert (await publisher.refresh()).publication is Publication.PUBLISHED
        place.files("a", "b")
        assert (await publisher.refresh()).publication is Publication.PUBLISHED
        assert (other.asked, files.asked) == ([], ["a", "b"])
        place.write("notes.txt", "nothing of this is intent")
        assert (await publisher.refresh()).publication is Publication.UNCHANGED
        assert files.asked == ["a", "b"]

    play(tmp_path, scenario)


def test_trouble_of_one_hides_no_finding_of_another(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a")
        validators = [fixed(TransientError("it is down")), fixed([BAD])]
        attempt = await published(place, *validators)
        assert (attempt.publication, codes(attempt)) == (Publication.UNREADABLE, {"VAL080", "fixed/N1"})

    play(tmp_path, scenario)


def test_a_store_that_is_down_is_not_the_trouble_of_a_validator(tmp_path: Path) -> None:
    """Else `when_down: warn` would publish without having asked."""

    class LooksUp(Fixed):
        async def ask(self, proposal: Proposal, blocking: Blocking) -> Sequence[Finding] | LehrError:
            await blocking.run(self._broken)
            return []

        def _broken(self) -> None:
            raise TransientError("the store is gone")

    async def scenario(place: Place) -> None:
        place.files("a")
        validator = LooksUp([[]], (), [], "fixed", WhenDown.WARN)
        with pytest.raises(TransientError, match="the store is gone"):
            await published(place, validator)
        assert place.store.intent.newest(place.publisher._partition) is None

    play(tmp_path, scenario)


def test_a_defect_ends_the_pass_and_the_other_questions(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        ended = asyncio.Event()

        class Waits(Fixed):
            async def ask(self, proposal: Proposal, blocking: Blocking) -> Sequence[Finding] | LehrError:
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.set()
                return []

        place.files("a")
        attempt = await published(place, Waits([[]]), fixed(ValueError("a defect")))
        assert (attempt.publication, codes(attempt)) == (Publication.UNREADABLE, {"PUB006"})
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), 5)
        assert ended.is_set()

    play(tmp_path, scenario)


def test_removed_assets_are_judged_as_well(tmp_path: Path) -> None:
    async def scenario(place: Place) -> None:
        place.files("a", "b")
        validator = fixed([])
        await published(place, validator)
        place.files("a")
        place.write("lehr.yaml", "partition: test\nlet_go: {b: elsewhere}\n")
        gone = fixed([Finding(code="N1", severity=Severity.ERROR, what="keep it", asset=AssetId("b"))])
        attempt = await published(place, gone)
        (shown,) = [item for item in attempt.diagnostics if item.code == "fixed/N1"]
        assert (gone.asked, shown.subject, str(shown.at)) == (["b"], "b", "assets/files.yaml")

    play(tmp_path, scenario)
