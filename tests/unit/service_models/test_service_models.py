"""What services, databases and files become, and what is refused of them, all at once."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.sdk.generator import DeclaredAsset, SourceFile, UnreadableFileError
from lehr.sdk.templates import provided
from lehr.service_models import modelled

SERVICE = """\
model: service
name: shop
version: v1
command: [shop, "{port}", "{place}", "{version}", "{files}/shop.conf"]
health: /healthz
environment: {WHERE: "{place}", TOKEN: {secret: "env:TOKEN"}}
files:
  shop.conf: "in {{ place }} at {{port}}, {{currency}}, {{open}}, {not} a ${value}"
values: {currency: EUR, open: true}
needs: [data/plays]
restart_on: [programs/shop.py]
versions: {data/schema: 2}
owner: web
places:
  eu: {port: 8500, replicas: 3}
  us: {port: 8520, version: v2, values: {currency: USD}, environment: {DEBUG: "1"}}
"""
DATABASE = """\
model: database
name: data
connection: postgresql://me@127.0.0.1:5432/shop
version: 3
server: {command: [serve, "{port}"], port: 5432, restart_on: [programs/serve]}
tables:
  lines: {columns: {id: {type: integer}, text: {type: text, nullable: false}}, primary_key: [id]}
  gone: {absent: true}
rows:
  lines:
    check: [rows, "{connection}", "{columns.lines}"]
    apply: [rows, --write, "{connection}"]
    needs: [programs/rows]
"""
FILES = """\
model: files
name: hosts
files:
  motd: {path: "etc/{{place}}/motd", content: "{{name}} says {{word}}", mode: "0600"}
values: {word: hello}
places:
  eu: {}
  us: {word: howdy}
"""


MISSPELT = {
    "a.toml": 'model = "files"\nname = "h"\n[files.motd]\npath = "etc/motd"\ncontent = "x"\nmod = "0600"\n',
    "a.json": (
        '{"model": "files", "name": "h",\n\n\n\n"files": {"motd": {"path": "etc/motd",'
        ' "content": "x",\n"mod": 1}}}'
    ),
    "a.yaml": "model: files\nname: h\nfiles:\n  motd:\n    {path: etc/motd, content: x,\n     mod: 1}\n",
}


@pytest.mark.parametrize("path", MISSPELT)
def test_a_model_is_read_from_any_format_and_so_are_the_places_of_its_problems(path: str) -> None:
    with pytest.raises(UnreadableFileError) as caught:
        list(modelled(SourceFile(path, MISSPELT[path].encode())))
    (found,) = caught.value.diagnostics
    assert (found.at and found.at.line, found.fix) == (6, "did you mean `mode`?")
    good = MISSPELT[path].replace("mod ", "mode ").replace('"mod"', '"mode"').replace("mod:", "mode:")
    good = good.replace(": 1", ': "0600"')
    (made,) = modelled(SourceFile(path, good.encode()))
    assert (made.id, made.payload["mode"]) == ("h/motd", "0600")


def assets(text: str) -> dict[str, DeclaredAsset]:
    return {item.id: item for item in modelled(SourceFile("x.yaml", text.encode()))}


def problems(text: str) -> list[tuple[str, int, str]]:
    """What is wrong, in which line, and how to mend it."""
    with pytest.raises(UnreadableFileError) as raised:
        assets(text)
    found = []
    for item in raised.value.diagnostics:
        assert (item.code, item.subject) == ("GEN034", "x.yaml")
        assert item.at is not None
        found.append((item.what.partition(": ")[2], item.at.line, item.fix))
    return found


def test_a_service_has_a_job_and_its_files_in_every_place() -> None:
    made = assets(SERVICE)
    assert list(made) == ["shop/eu/shop.conf", "shop/eu/job", "shop/us/shop.conf", "shop/us/job"]
    assert made["shop/us/shop.conf"].payload == {
        "path": "production/shop/us/shop.conf",
        "content": "in us at 8520, USD, true, {not} a ${value}",
    }


def test_what_a_place_says_goes_over_what_the_service_says() -> None:
    made = assets(SERVICE)
    eu, us = made["shop/eu/job"].payload, made["shop/us/job"].payload
    assert eu["command"] == ["shop", "{port}", "eu", "v1", "production/shop/eu/shop.conf"]
    assert us["command"] == ["shop", "{port}", "us", "v2", "production/shop/us/shop.conf"]
    assert (eu["replicas"], us["replicas"]) == (3, 1)
    assert (eu["version"], us["version"]) == ("v1", "v2")
    assert (us["environment"]["WHERE"], us["environment"]["DEBUG"]) == ("us", "1")
    assert us["ports"] == [{"name": "http", "base": 8520}]
    assert us["health_url"] == "http://127.0.0.1:{port}/healthz"


def test_a_job_is_rolled_by_its_files_and_waits_for_what_it_needs() -> None:
    job = assets(SERVICE)["shop/eu/job"]
    assert job.payload["restart_on"] == ["programs/shop.py", "shop/eu/shop.conf"]
    assert job.addons["lehr.DependsOn"] == {
        "assets": ["data/plays"],
        "versions": [{"asset": "data/schema", "at_least": "2"}],
    }


def test_everything_in_a_place_can_be_selected_by_it() -> None:
    for id, item in assets(SERVICE).items():
        place = id.split("/")[1]
        assert item.addons["lehr.Labels"] == {"labels": {"service": "shop", "place": place}}
        assert item.addons["lehr.AffectedClusters"] == {"clusters": [place]}
        assert item.addons["lehr.Owner"] == {"team": "web"}


def test_a_place_that_is_turned_down_takes_all_its_assets_with_it() -> None:
    made = assets(SERVICE.replace("{port: 8520,", "{port: 8520, turndown: too far away,"))
    gone = {id for id, item in made.items() if item.addons.get("lehr.Turndown") == {"reason": "too far away"}}
    assert gone == {"shop/us/shop.conf", "shop/us/job"}


def test_a_service_without_places_runs_once() -> None:
    made = assets("{model: service, name: cron, command: [cron]}")
    assert list(made) == ["cron/job"]
    assert "ports" not in made["cron/job"].payload
    assert made["cron/job"].addons == {"lehr.Labels": {"labels": {"service": "cron"}}}


def test_a_database_has_its_server_its_schema_and_its_rows_one_after_the_other() -> None:
    made = assets(DATABASE)
    assert list(made) == ["data/server", "data/schema", "data/lines"]
    after: Any = [item.addons.get("lehr.DependsOn") for item in made.values()]
    assert after == [None, {"assets": ["data/server"]}, {"assets": ["data/schema", "programs/rows"]}]
    assert made["data/server"].payload["ports"] == [{"name": "sql", "base": 5432}]
    assert made["data/lines"].payload["check"] == ["rows", "postgresql://me@127.0.0.1:5432/shop", "id,text"]
    assert made["data/schema"].payload["tables"]["gone"]["absent"] is True


def test_a_database_that_somebody_else_runs_is_its_schema_alone() -> None:
    text = "{model: database, name: d, connection: 'sqlite:x', version: 0, tables: {}, needs: [folder]}"
    made = assets(text)
    assert list(made) == ["d/schema"]
    assert made["d/schema"].addons["lehr.DependsOn"] == {"assets": ["folder"]}


def test_files_are_rendered_for_every_place() -> None:
    made = assets(FILES)
    assert {id: item.payload["content"] for id, item in made.items()} == {
        "hosts/eu/motd": "hosts says hello",
        "hosts/us/motd": "hosts says howdy",
    }
    assert made["hosts/us/motd"].payload["path"] == "etc/us/motd"
    assert made["hosts/us/motd"].payload["mode"] == "0600"


@pytest.mark.parametrize(
    ("text", "what", "line", "fix"),
    [
        ("{name: x}", "it has no `model`", 1, "write `model:` with one of service"),
        ("name: x\nmodel: servce", "there is no model 'servce'", 2, "did you mean `service`?"),
        (SERVICE.replace("health:", "helth:"), "unknown field `helth`", 5, "did you mean `health`?"),
        (SERVICE.replace("replicas: 3", "replicas: -3"), "Expected `int` >= 0", 15, "docs/reference"),
        (SERVICE.replace("{port: 8500, ", "{"), "`health` needs a `port`", 1, "docs/reference"),
        (SERVICE.replace("currency: EUR, ", ""), "`currency`", 8, "`values`"),
        (SERVICE.replace("[shop,", "[7,"), "Expected `str`, got `int`", 4, "docs/reference"),
        (DATABASE.replace("type: integer", "typ: integer"), "unknown field `typ`", 7, "did you mean `type`?"),
        (
            DATABASE.replace("  lines:\n", "  line:\n"),
            "rows of line",
            10,
            "lines",
        ),
        (
            DATABASE.replace("columns.lines", "columns.line"),
            "columns of line",
            11,
            "lines",
        ),
        (DATABASE.replace("version: 3\n", ""), "`version` is missing", 1, "add `version`"),
        (DATABASE.replace("type: integer", "type: in;t"), "matching regex", 7, "docs/reference"),
        (DATABASE.replace("[id]", "[idd]"), "idd", 7, "id, text"),
        (DATABASE.replace("absent: true", "absent: false"), "either columns or `absent: true`", 8, "docs"),
        (FILES.replace("{{word}}", "{{wort}}"), "`wort`", 4, "word"),
        (FILES.replace("mode:", "modes:"), "unknown field `modes`", 4, "did you mean `mode`?"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_place(text: str, what: str, line: int, fix: str) -> None:
    [(found, at, mend), *others] = problems(text)
    assert what in found
    assert at == line
    assert fix in mend
    assert not others or all(what.partition(" in place")[0] in item[0] for item in others)


def test_all_that_is_wrong_is_told_at_once() -> None:
    text = SERVICE.replace("name: shop", "name: SHOP").replace("replicas: 3", "replica: 3")
    text = text.replace("port: 8520", "port: zero").replace("owner: web", "owner: [web]")
    assert [line for _, line, _ in problems(text)] == [2, 13, 15, 16]


def test_a_mapping_is_asked_for_where_there_is_none() -> None:
    assert problems("[model]")[0][0] == "it has no `model`"
    assert problems("model: service\nname: x\ncommand: [x]\nplaces: [eu]\n")[0][1] == 4


def test_a_file_is_rendered_from_a_template_with_the_values_of_its_place() -> None:
    text = FILES.replace('content: "{{name}} says {{word}}"', "template: templates/motd.j2")
    with provided(
        {"templates/motd.j2": b"{% if word == 'hello' %}{{ name }}{% else %}{{ place }}{% endif %}"}
    ):
        made = assets(text)
    assert [made[f"hosts/{place}/motd"].payload["content"] for place in ("eu", "us")] == ["hosts", "us"]
    with provided({"templates/motd.j2": b"{{ missing }}"}), pytest.raises(UnreadableFileError) as caught:
        assets(text)
    assert str(caught.value.diagnostics[0].at) == "templates/motd.j2:1:4"


def test_a_file_has_either_content_or_a_template() -> None:
    for given in ("template: t, content: x", "mode: '0600'"):
        with pytest.raises(UnreadableFileError, match="either `content` or `template`"):
            assets(FILES.replace('content: "{{name}} says {{word}}"', given).replace(', mode: "0600"', ""))
