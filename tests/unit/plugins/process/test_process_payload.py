"""What a `lehr.Process` may say, and what its replicas come to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lehr.base.digest import Digest, digest
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.secret import Secret
from lehr.plugins.process.payload import Process
from lehr.plugins.process.render import Replica, asset_name, program_name, program_section, render


def process(**fields: Any) -> Process:
    return msgspec.convert({"command": ["serve"], **fields}, Process)


def rendered(**fields: Any) -> list[Replica]:
    return list(render(process(**fields), "shop", "/srv", ()))


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"command": []}, "length >= 1"),
        ({"command": [""]}, "empty string"),
        ({"command": ["a\0b"]}, "regex"),
        ({"replicas": -1}, ">= 0"),
        ({"replicas": 1001}, "<= 1000"),
        ({"group": "../x"}, "`group`"),
        ({"environment": {"A=B": "1"}}, "'A=B'"),
        ({"environment": {"": "1"}}, "`environment` has ''"),
        ({"environment": {"LEHR_CONTENT": "1"}}, "reserved"),
        ({"health_url": "http://example.com/"}, "loopback"),
        ({"health_url": "http://127.0.0.1.example.com/"}, "loopback"),
        ({"health_url": "http://127.0.0.1@example.com/"}, "loopback"),
        ({"health_url": "https://example.com/", "health_any_host": True}, "start with http://"),
        ({"ports": [{"name": "a", "base": 80}, {"name": "a", "base": 90}]}, "twice"),
        (
            {"ports": [{"name": "a", "base": 80}, {"name": "b", "base": 81}], "replicas": 2},
            "ports a and b both",
        ),
        ({"ports": [{"name": "a", "base": 65535}], "replicas": 2}, "above 65535"),
        ({"command": ["serve", "{port}"]}, "{port} does not"),
        ({"environment": {"PORT": "{port.web}"}}, "{port.web} does not"),
        (
            {"command": ["{port}"], "ports": [{"name": "a", "base": 1}, {"name": "b", "base": 2}]},
            "{port.a}, {port.b}",
        ),
        ({"stop_timeout_seconds": 0}, "> 0"),
        ({"restart_on": ["a", "b"], "reload_on": ["b"]}, "both name b"),
        ({"reload_on": ["a"], "reload_signal": "HUP"}, "enum value 'HUP'"),
        ({"reload_on": ["a"], "reload_signal": "SIGHUP", "reload_command": ["x"]}, "keep one"),
        ({"reload_on": ["a"], "reload_command": [""]}, "empty string"),
        ({"reload_signal": "SIGHUP"}, "nothing is ever reloaded"),
        ({"reload_on": ["a"], "reload_command": ["x", "{port}"]}, "{port} does not"),
        ({"stop_signal": "SIGSTOP"}, "enum value 'SIGSTOP'"),
        ({"user": "a b"}, "regex"),
        ({"user_group": ""}, "regex"),
        ({"umask": "99"}, "regex"),
        ({"limits": {"nofile": -1}}, ">= 0"),
        ({"limits": {"nofile": "infinite"}}, "enum value 'infinite'"),
        ({"limits": {"files": 1}}, "unknown field `files`"),
        ({"environment_file": "{port}"}, "{port} does not"),
        ({"logs": {"max_files": 1}}, ">= 2"),
        ({"logs": {"max_file_mib": 0}}, ">= 1"),
        ({"health": {}}, "exactly one of `url`, `tcp` and `command`"),
        ({"health": {"tcp": "127.0.0.1:1", "command": ["x"]}}, "exactly one of"),
        ({"health": {"tcp": "127.0.0.1:1", "headers": {"A": "1"}}}, "need a `url`"),
        ({"health": {"tcp": "127.0.0.1:1", "expect_status": [204]}}, "need a `url`"),
        ({"health": {"tcp": "127.0.0.1"}}, "`tcp` must have the form"),
        ({"readiness": {"tcp": "example.com:80"}}, "`readiness` must ask on a loopback address"),
        ({"health": {"command": [""]}}, "empty string"),
        ({"health": {"url": "http://127.0.0.1/a b"}}, "no spaces"),
        ({"health": {"url": "http://127.0.0.1/", "expect_status": []}}, "length >= 1"),
        ({"health": {"url": "http://127.0.0.1/", "expect_status": [99]}}, ">= 100"),
        ({"health": {"url": "http://127.0.0.1/", "expect_status": ["2x"]}}, "enum value '2x'"),
        ({"health": {"url": "http://127.0.0.1/", "headers": {"A b": "1"}}}, "regex"),
        ({"health": {"url": "http://127.0.0.1/", "headers": {"A": "1\r\nB: 2"}}}, "regex"),
        ({"health": {"url": "http://127.0.0.1/", "expect_body_pattern": "(a"}}, "regular expression"),
        ({"health": {"url": "http://127.0.0.1/", "expect_body_pattern": "(?=a)"}}, "look-around"),
        ({"health": {"url": "http://127.0.0.1/", "timeout_seconds": 9}}, "<= 8"),
        ({"health": {"tcp": "127.0.0.1:{port}"}}, "{port} does not"),
        ({"readiness": {"command": ["x", "{port}"]}}, "{port} does not"),
        ({"health_url": "http://127.0.0.1/", "health": {"tcp": "127.0.0.1:1"}}, "keep one"),
        ({"health_interval_seconds": 0.1}, ">= 0.5"),
        ({"unheard": 1}, "unknown field"),
    ],
)
def test_a_payload_that_cannot_work_is_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        process(**fields)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://localhost/", "http://127.0.0.1:{port}/healthz", "http://[::1]:80/x?y"]
)
def test_health_is_asked_on_the_loopback_interface(url: str) -> None:
    assert process(health_url=url, ports=[{"name": "web", "base": 80}]).health_url == url


def test_health_may_be_asked_elsewhere_when_said_so() -> None:
    assert process(health_url="http://example.com/", health_any_host=True).health_any_host


def test_each_replica_has_its_own_port_and_number() -> None:
    replicas = rendered(
        command=["serve", "--port={port}", "{replica}", "{directory}"],
        environment={"ADMIN": "{port.web}"},
        ports=[{"name": "web", "base": 8000}],
        health_url="http://127.0.0.1:{port}/",
        replicas=2,
        directory="data",
    )
    assert [item.command for item in replicas] == [
        ("serve", "--port=8000", "0", "/srv/data"),
        ("serve", "--port=8001", "1", "/srv/data"),
    ]
    assert [item.environment for item in replicas] == [{"ADMIN": "8000"}, {"ADMIN": "8001"}]
    urls = [item.health.url for item in replicas if item.health]
    assert urls == ["http://127.0.0.1:8000/", "http://127.0.0.1:8001/"]
    assert [item.ports for item in replicas] == [(8000,), (8001,)]


def test_other_braces_stand_for_themselves() -> None:
    (replica,) = rendered(command=["x", '{"a": {replica}}', "{{replica}}", "${HOME}", "{{replica}"])
    assert replica.command[1:] == ('{"a": 0}', "{replica}", "${HOME}", "{0")


@pytest.mark.parametrize(
    "fields",
    [
        {"command": ["other"]},
        {"environment": {"A": "1"}},
        {"directory": "/tmp"},
        {"stop_timeout_seconds": 3},
        {"version": "2"},
        {"stop_signal": "SIGQUIT"},
        {"environment_file": "env"},
        {"user": "nobody"},
        {"user_group": "nogroup"},
        {"umask": "027"},
        {"limits": {"nofile": 1024}},
        {"logs": {"max_file_mib": 6}},
        {"logs": {"max_files": 3}},
        {"logs": {"merge_stderr": True}},
    ],
)
def test_what_a_running_process_is_made_of_is_its_content(fields: dict[str, Any]) -> None:
    assert rendered(**fields)[0].content != rendered()[0].content


@pytest.mark.parametrize(
    "fields",
    [
        {"replicas": 5},
        {"health_timeout_seconds": 9},
        {"health_interval_seconds": 9},
        {"health": {"tcp": "127.0.0.1:1"}},
        {"readiness": {"command": ["true"]}},
        {"start_timeout_seconds": 9},
        {"group": "other"},
    ],
)
def test_what_needs_no_restart_is_not_content(fields: dict[str, Any]) -> None:
    assert rendered(**fields)[0].content == rendered()[0].content


def test_a_secret_counts_as_it_is_referred_to_and_is_no_plain_variable() -> None:
    def with_secret(**fields: str) -> Replica:
        return rendered(environment={"A": "{replica}", "TOKEN": {"secret": "age:x.age", **fields}})[0]

    replica = with_secret()
    assert replica.environment == {"A": "0"}
    assert replica.secrets == {"TOKEN": Secret("age:x.age")}
    others = [with_secret(digest="1"), with_secret(digest="2"), with_secret(version="2")]
    assert len({item.content for item in (replica, *others)}) == 4


def test_what_runs_without_secrets_is_what_it_was_before_there_were_any() -> None:
    (replica,) = rendered(environment={"A": "1"})
    made_of: tuple[object, ...] = (("serve",), {"A": "1"}, "/srv", (), 10.0, "", [])
    assert replica.content == digest(made_of)


def test_a_change_of_an_asset_in_restart_on_is_a_change_of_content() -> None:
    payload = process(restart_on=["settings"])
    before = render(payload, "shop", "/", [Digest("a")])
    assert render(payload, "shop", "/", [Digest("b")])[0].content != before[0].content


def test_a_change_of_an_asset_in_reload_on_is_loaded_and_is_not_content() -> None:
    words: list[list[Digest]] = [[], [Digest("a")], [Digest("b")]]
    found = [render(process(), "shop", "/", (), word)[0] for word in words]
    assert len({replica.content for replica in found}) == 1
    assert len({replica.loaded for replica in found}) == 3


def test_the_group_is_the_partition_unless_named() -> None:
    assert rendered()[0].group == "shop"
    assert rendered(group="web")[0].group == "web"


def test_names_of_different_assets_differ_and_suit_supervisord_and_file_systems() -> None:
    ids = ["a/b", "a:b", "a.b", "a-b", "a_b", "a@b", "a/" + "b" * 198, "a:" + "b" * 198]
    names = [asset_name(AssetKey(Partition("p" * 63), AssetId(id))) for id in ids]
    assert len(set(names)) == len(ids)
    assert not any(set(name) & set(" /:%*?[];#") for name in names)
    assert max(len(name) for name in names) < 200
    assert program_name(AssetKey(Partition("shop"), AssetId("web/front")), 3) == "shop=web+front-3"


def test_the_definition_escapes_what_supervisord_would_expand() -> None:
    replica = rendered(stop_timeout_seconds=2.5)[0]
    section = program_section("a-0", ("/opt/100% py/python", "x"), replica, "assets/a/0")
    assert "command='/opt/100%% py/python' x\n" in section
    assert "stopwaitsecs=3\n" in section
    assert "autostart=false\n" in section
