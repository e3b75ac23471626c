"""Who may read over HTTP: programs with the token, a browser with its cookie, and probes."""

from __future__ import annotations

import pytest

from lehr.base.chance import new_token
from lehr.http.access import OPEN_PATHS, TICKET_SECONDS, Access, new_ticket

TOKEN = new_token()
NOW = 1_767_225_600.0


def cookie_of(access: Access, token: str = TOKEN) -> str:
    header = access.set_cookie(new_ticket(token, NOW), NOW)
    assert header is not None
    return header.partition(";")[0]


@pytest.mark.parametrize(
    "path", ["/", "/v1/run", "/v1/partitions/a/assets", "/healthz/", "/openapi.json", "/static", "/Static/x"]
)
def test_without_a_token_only_listed_paths_are_open(path: str) -> None:
    assert not Access(TOKEN).admits(path)


@pytest.mark.parametrize("path", [*sorted(OPEN_PATHS), "/static/0/lehr.css"])
def test_listed_paths_need_no_token(path: str) -> None:
    assert Access(TOKEN).admits(path)


def filled(header: str) -> str:
    """The header with the token, which ids of tests must not contain."""
    return header.replace("TOKEN", TOKEN).replace("CUT", TOKEN[:-1])


@pytest.mark.parametrize("header", ["Bearer TOKEN", "bearer TOKEN", "Bearer  TOKEN "])
def test_the_token_admits(header: str) -> None:
    assert Access(TOKEN).admits("/v1/run", filled(header))


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "TOKEN", "Basic TOKEN", "Bearer TOKENx", "Bearer CUT", "Bearer é"]
)
def test_nothing_else_admits(header: str) -> None:
    assert not Access(TOKEN).admits("/v1/run", filled(header))


def test_a_ticket_becomes_a_strict_session_cookie_that_hides_the_token() -> None:
    access = Access(TOKEN)
    header = access.set_cookie(new_ticket(TOKEN, NOW), NOW)
    assert header is not None
    assert header.split("; ")[1:] == ["HttpOnly", "SameSite=Strict", "Path=/"]
    assert TOKEN not in header
    assert access.admits("/", cookies=f"other=1; {cookie_of(access)}")


def test_a_ticket_hides_the_token() -> None:
    assert TOKEN not in new_ticket(TOKEN, NOW)


def test_a_ticket_works_once() -> None:
    access = Access(TOKEN)
    ticket = new_ticket(TOKEN, NOW)
    assert access.set_cookie(ticket, NOW + 1.0)
    assert access.set_cookie(ticket, NOW + 1.0) is None


def test_a_ticket_expires() -> None:
    access = Access(TOKEN)
    assert access.set_cookie(new_ticket(TOKEN, NOW), NOW + TICKET_SECONDS) is None


def test_used_tickets_are_remembered_only_while_they_could_be_used_again() -> None:
    access = Access(TOKEN)
    for second in range(1000):
        assert access.set_cookie(new_ticket(TOKEN, NOW + second), NOW + second)
    assert len(access._used) <= TICKET_SECONDS + 1


@pytest.mark.parametrize("place", [0, 20, -1])
def test_a_ticket_that_was_changed_is_refused(place: int) -> None:
    given = list(new_ticket(TOKEN, NOW))
    given[place] = "0" if given[place] != "0" else "1"
    assert Access(TOKEN).set_cookie("".join(given), NOW) is None


@pytest.mark.parametrize("ticket", ["", ".", "..", "1.2.3", "é", "nan.x.0", "\udc80"])
def test_anything_may_be_sent_as_a_ticket(ticket: str) -> None:
    assert Access(TOKEN).set_cookie(ticket, NOW) is None


def test_what_belongs_to_another_state_does_not_admit() -> None:
    other = new_token()
    assert not Access(TOKEN).admits("/", cookies=cookie_of(Access(other), other))
    assert Access(TOKEN).set_cookie(new_ticket(other, NOW), NOW) is None


def test_the_cookie_is_not_a_token() -> None:
    access = Access(TOKEN)
    assert not access.admits("/", f"Bearer {cookie_of(access).partition('=')[2]}")


def test_an_empty_token_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        Access("")
