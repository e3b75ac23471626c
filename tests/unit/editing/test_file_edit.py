"""One change in a file: the characters of the value change, and no others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lehr.editing.changes import Add, Change, Compute, Delete, EditError, Replace
from lehr.editing.file_edit import apply
from tests.codes import raises

FILE = "assets.yaml"

ASSETS = """\
# The sites.
- id: web   # the front
  payload:
    replicas: 3   # three are enough
    command: [serve, --port, "80"]  # as in the tutorial
    banner: |
      one
      two

    env:
      A: x
      # B is needed by nobody
      B: 'y'
  addons:
    lehr.Labels: {team: web}
- id: db
  payload:
    disks:
    - 1
    - 2  # the large one
    nothing:
# The end."""


def edited(text: str, change: Change) -> str:
    return apply(text.encode(), change).content.decode()


def lines(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that went, and those that came, where the others are the same, in order."""
    old, new = before.splitlines(), after.splitlines()
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return old, new


def replace(path: str, value: Any, text: str = ASSETS, file: str = FILE) -> tuple[list[str], list[str]]:
    change = Replace(file=file, path=path, value=value, retype=True)
    return lines(text, edited(text, change))


def add(path: str, value: Any, text: str = ASSETS, file: str = FILE) -> tuple[list[str], list[str]]:
    return lines(text, edited(text, Add(file=file, path=path, value=value)))


def delete(path: str, text: str = ASSETS, file: str = FILE) -> tuple[list[str], list[str]]:
    return lines(text, edited(text, Delete(file=file, path=path)))


def refusal(change: Change, text: str = ASSETS) -> str:
    with pytest.raises(EditError) as refused:
        edited(text, change)
    return refused.value.diagnostics[0].code


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("[id=web].payload.replicas", 5, "    replicas: 5   # three are enough"),
        ("/0/payload/replicas", None, "    replicas: null   # three are enough"),
        ("[id=web].payload.replicas", "no", '    replicas: "no"   # three are enough'),
        ("[id=web].payload.command[2]", "81", '    command: [serve, --port, "81"]  # as in the tutorial'),
        ("[id=web].payload.command", ["a:b"], '    command: ["a:b"]  # as in the tutorial'),
        ("[id=web].payload.env.B", "it's", "      B: 'it''s'"),
        ("[id=web].payload.env.B", "a\nb", '      B: "a\\nb"'),
        ('[id=web].addons."lehr.Labels".team', "a: b", '    lehr.Labels: {team: "a: b"}'),
        ("[id=db].payload.nothing", {"a": 1}, "    nothing: {a: 1}"),
        ("[id=db].payload.disks[1]", 4, "    - 4  # the large one"),
    ],
)
def test_a_value_in_one_line_changes_in_that_line(path: str, value: Any, line: str) -> None:
    went, came = replace(path, value)
    assert len(went) == 1
    assert came == [line]


def test_a_block_of_text_stays_one() -> None:
    assert replace("[id=web].payload.banner", "three\n\n  four\n") == (
        ["      one", "      two"],
        ["      three", "", "        four"],
    )


def test_a_block_of_text_becomes_a_line_where_one_is_enough() -> None:
    assert replace("[id=web].payload.banner", "short") == (
        ["    banner: |", "      one", "      two"],
        ["    banner: short"],
    )


def test_a_block_mapping_stays_one() -> None:
    went, came = replace("[id=web].payload.env", {"C": 1, "D": {"e": [1, {"f": 2}]}})
    assert came == ["      C: 1", "      D:", "        e:", "          - 1", "          - f: 2"]
    assert len(went) == 3


@pytest.mark.parametrize(
    ("path", "value", "went", "came"),
    [
        ("[id=web].payload.env", {"A": "z", "B": "y"}, ["      A: x"], ["      A: z"]),
        ("[id=web].payload.env", {"A": "x", "B": "y", "C": 1}, [], ["      C: 1"]),
        ("[id=web].payload.env", {"B": "y"}, ["      A: x"], []),
        ("[id=db].payload.disks", [1, 2, 3], [], ["    - 3"]),
        ("[id=db].payload.disks", [2], ["    - 1"], []),
        ("[id=db].payload.disks", [1, 3], ["    - 2  # the large one"], ["    - 3  # the large one"]),
        ("[id=db]", {"id": "db", "payload": {"disks": [1, 2]}}, ["    nothing:"], []),
    ],
)
def test_of_a_block_that_is_replaced_only_what_differs_changes(
    path: str, value: Any, went: list[str], came: list[str]
) -> None:
    assert replace(path, value) == (went, came)


def test_a_list_without_an_indent_becomes_a_mapping_with_one() -> None:
    assert replace("[id=db].payload.disks", {"a": 1}) == (
        ["    - 1", "    - 2  # the large one"],
        ["      a: 1"],
    )


def test_a_block_beside_its_dash_is_replaced_there() -> None:
    text = "- a: 1\n  b: 2  # two\n- c\n"
    change = Replace(file=FILE, path="/0", value={"x": [1]}, retype=True)
    assert edited(text, change) == "- x:\n    - 1\n- c\n"
    assert edited(text, Replace(file=FILE, path="/0", value=5, retype=True)) == "- 5  # two\n- c\n"


def test_a_block_that_becomes_empty_is_written_beside_its_key() -> None:
    assert replace("[id=db].payload.disks", []) == (
        ["    disks:", "    - 1", "    - 2  # the large one"],
        ["    disks: []"],
    )


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("[id=web].payload.env.C", True, "      C: true"),
        ("[id=db].payload.disks.-", 3, "    - 3"),
        ("[id=db].payload.size", 3, "    size: 3"),
        ("[id=web].payload.limits", {"cpu": 1}, "    limits: {cpu: 1}"),
    ],
)
def test_what_is_added_is_a_line_after_the_last(path: str, value: Any, line: str) -> None:
    assert add(path, value) == ([], [line])


def test_what_is_added_in_brackets_stays_in_them() -> None:
    assert add("[id=web].payload.command.-", "x")[1] == [
        '    command: [serve, --port, "80", x]  # as in the tutorial'
    ]
    assert add('[id=web].addons."lehr.Labels".on', 1)[1] == ['    lehr.Labels: {team: web, "on": 1}']


def test_what_is_added_at_the_end_of_a_file_without_a_newline_begins_a_line() -> None:
    assert edited("a: 1", Add(file=FILE, path="b", value=2)) == "a: 1\nb: 2"


@pytest.mark.parametrize(
    ("path", "went", "came"),
    [
        ("[id=web].payload.env.A", ["      A: x"], []),
        (
            "[id=web].payload.env",
            ["    env:", "      A: x", "      # B is needed by nobody", "      B: 'y'"],
            [],
        ),
        ("[id=web].payload.banner", ["    banner: |", "      one", "      two"], []),
        ("[id=db].payload.disks[0]", ["    - 1"], []),
        ("[id=web].id", ["- id: web   # the front", "  payload:"], ["- payload:"]),
    ],
)
def test_what_is_deleted_goes_with_its_lines(path: str, went: list[str], came: list[str]) -> None:
    assert delete(path) == (went, came)


@pytest.mark.parametrize(
    ("number", "rest"), [(0, '[--port, "80"]'), (1, '[serve, "80"]'), (2, "[serve, --port]")]
)
def test_what_is_deleted_in_brackets_goes_with_its_comma(number: int, rest: str) -> None:
    assert delete(f"[id=web].payload.command[{number}]")[1] == [f"    command: {rest}  # as in the tutorial"]


def test_what_is_deleted_beside_its_dash_leaves_the_comments_of_the_next_key() -> None:
    text = "- a: 1  # mine\n  # about b\n  b: 2\n"
    assert edited(text, Delete(file=FILE, path="/0/a")) == "-\n  # about b\n  b: 2\n"


def test_the_last_entry_that_is_deleted_leaves_an_empty_mapping() -> None:
    assert delete('[id=web].addons."lehr.Labels"')[1] == ["  addons: {}"]
    assert edited("a: 1\n", Delete(file=FILE, path="a")) == "{}\n"


def test_windows_line_ends_stay() -> None:
    text = ASSETS.replace("\n", "\r\n")
    for change in (
        Replace(file=FILE, path="/0/payload/banner", value="x\ny\n"),
        Replace(file=FILE, path="/0/payload/env", value={"C": 1, "D": 2}),
        Add(file=FILE, path="/1/payload/disks/-", value=3),
        Delete(file=FILE, path="/0/payload/env/A"),
    ):
        assert edited(text, change) == edited(ASSETS, change).replace("\n", "\r\n")


def test_the_first_part_of_a_path_chooses_among_documents() -> None:
    text = "id: a\nn: 1\n---\n# b\nid: b\nn: 1\n"
    assert lines(text, edited(text, Replace(file=FILE, path="[id=b].n", value=2))) == (["n: 1"], ["n: 2"])
    assert edited(text, Replace(file=FILE, path="/0/n", value=2)).startswith("id: a\nn: 2\n---")


def test_an_asset_alone_in_its_file_is_found_by_its_id() -> None:
    assert edited("id: a\nn: 1\n", Replace(file=FILE, path="[id=a].n", value=2)) == "id: a\nn: 2\n"


JSON = '{\n  "a": [\n    1,\n    2\n  ],\n  "b": {"c": "x"}\n}\n'


def test_json_keeps_its_layout() -> None:
    file = "a.json"
    assert replace("b.c", "ü\n", JSON, file)[1] == ['  "b": {"c": "ü\\n"}']
    assert add("a.-", 3, JSON, file) == (["    2"], ["    2,", "    3"])
    assert add("d", None, JSON, file)[1] == ['  "b": {"c": "x"},', '  "d": null']
    assert delete("a.0", JSON, file) == (["    1,"], [])
    assert edited(JSON, Delete(file=file, path="a.1")) == JSON.replace("1,\n    2", "1")


TOML = """\
title = 'x'  # the title
dotted.a = 1

[server]
ports = [
  80,  # plain
  443
]
"odd key" = 1.5

[server.tls]
on = true

[[site]]
id = "web"
n = 1

[[site]]
id = "db"
limits = {cpu = 1}
# end
"""


def test_toml_keeps_its_layout() -> None:
    file = "a.toml"
    assert replace("title", "it", TOML, file)[1] == ["title = 'it'  # the title"]
    assert replace("dotted.a", 2.5, TOML, file)[1] == ["dotted.a = 2.5"]
    assert replace("server.ports.0", 81, TOML, file)[1] == ["  81,  # plain"]
    assert replace("site[id=db].limits.cpu", [1], TOML, file)[1] == ["limits = {cpu = [1]}"]
    assert replace("server.tls", {"on": False, "new": "a\nb"}, TOML, file)[1] == [
        "on = false",
        'new = "a\\nb"',
    ]
    assert add("server.ports.-", 8080, TOML, file) == (["  443"], ["  443,", "  8080"])
    assert add("server.tls.k 1", 1, TOML, file) == ([], ['"k 1" = 1'])
    assert add("server.new", {"a": 1}, TOML, file) == ([], ["new = {a = 1}"])
    assert add("top", 1, TOML, file) == ([], ["top = 1"])
    assert add("site[id=web].m", 1, TOML, file) == ([], ["m = 1"])
    assert delete("server.ports", TOML, file)[0] == ["ports = [", "  80,  # plain", "  443", "]"]
    assert delete("server.tls.on", TOML, file) == (["on = true"], [])
    assert delete("site[id=web].n", TOML, file) == (["n = 1"], [])


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (Replace(file="a.toml", path="title", value=None), "EDT007"),
        (Delete(file="a.toml", path="server.tls"), "EDT008"),
        (Delete(file="a.toml", path="site.0"), "EDT008"),
        (Delete(file="a.toml", path="dotted.a"), "EDT008"),
        (Add(file="a.toml", path="dotted.b", value=1), "EDT008"),
        (Add(file="a.toml", path="site.-", value={"id": "new"}), "EDT008"),
        (Replace(file="a.toml", path="server", value=1, retype=True), "EDT008"),
    ],
)
def test_tables_of_toml_are_not_rewritten(change: Change, code: str) -> None:
    assert refusal(change, TOML) == code


def test_a_function_makes_the_new_value_from_the_old_one() -> None:
    change = Compute(file=FILE, path="/0/payload/replicas", function=lambda old: old + 1)
    assert lines(ASSETS, edited(ASSETS, change))[1] == ["    replicas: 4   # three are enough"]


def test_a_function_may_change_the_list_that_it_is_given() -> None:
    def grown(disks: list[int]) -> list[int]:
        disks.append(3)
        return disks

    assert lines(ASSETS, edited(ASSETS, Compute(file=FILE, path="/1/payload/disks", function=grown))) == (
        [],
        ["    - 3"],
    )


def test_a_value_that_is_as_wanted_changes_nothing() -> None:
    assert edited(ASSETS, Replace(file=FILE, path="/0/payload/replicas", value=3)) == ASSETS


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (Replace(file=FILE, path="a..b", value=1), "EDT001"),
        (Replace(file=FILE, path="[id=wep].payload", value=1), "EDT002"),
        (Replace(file=FILE, path="/0/payload/replcas", value=1), "EDT002"),
        (Replace(file=FILE, path="/7", value=1), "EDT002"),
        (Replace(file=FILE, path="/0/id/x", value=1), "EDT002"),
        (Add(file=FILE, path="/0/id", value=1), "EDT003"),
        (Add(file=FILE, path="/0/id/x", value=1), "EDT003"),
        (Add(file=FILE, path="/0/payload/command/1", value=1), "EDT003"),
        (Replace(file=FILE, path="/0/payload/replicas", value="three"), "EDT004"),
        (Replace(file=FILE, path="/0/payload/replicas", value=True), "EDT004"),
        (Replace(file=FILE, path="/0/payload/replicas", value=5, expect=4), "EDT005"),
        (Replace(file=FILE, path="/0/payload/replicas", value=5, expect=3.0), "EDT005"),
        (Delete(file=FILE, path="/0/id", expect="db"), "EDT005"),
        (Replace(file=FILE, path="/0/payload/replicas", value=float("nan"), retype=True), "EDT007"),
        (Replace(file=FILE, path="/0/payload/replicas", value=object(), retype=True), "EDT007"),
        (Replace(file=FILE, path="/0/payload/replicas", value=2**70), "EDT007"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_code(change: Change, code: str) -> None:
    assert refusal(change) == code


@pytest.mark.parametrize(
    ("text", "path", "code"),
    [
        ("a: &x 1\nb: *x\n", "a", "EDT006"),
        ("a: &x 1\nb: *x\n", "b", "EDT006"),
        ("a: &x {c: 1}\nb: *x\n", "a.c", "EDT006"),
        ("a: &x {c: 1}\nb: *x\n", "b.c", "EDT006"),
        ("a: !!str 1\n", "a", "EDT006"),
        ("a: 1\na: 2\n", "a", "DOC005"),
        ("a: [1\n", "a", "DOC004"),
        ("[", "a", "DOC004"),
        ("", "a", "EDT002"),
        ("[id=x]", "a", "EDT002"),
    ],
)
def test_a_file_that_is_not_plain_is_refused(text: str, path: str, code: str) -> None:
    assert refusal(Replace(file=FILE, path=path, value=3, retype=True), text) == code


def test_an_anchor_elsewhere_is_no_hindrance() -> None:
    text = "a: &x 1\nb: *x\nc: 1\n"
    assert edited(text, Replace(file=FILE, path="c", value=2)) == "a: &x 1\nb: *x\nc: 2\n"


def test_bytes_that_are_no_text_are_refused() -> None:
    with raises("DOC002", EditError) as refused:
        apply(b"a: \xff\n", Replace(file=FILE, path="a", value=1))
    assert refused.value.diagnostics[0].code == "DOC002"


def test_a_slip_of_the_pen_is_answered_with_what_was_meant() -> None:
    with raises("EDT002", EditError) as refused:
        edited(ASSETS, Replace(file=FILE, path="[id=web].addons.lehr.Labels", value=1))
    diagnostic = refused.value.diagnostics[0]
    assert '"lehr.Labels"' in diagnostic.fix
    assert diagnostic.at is not None
    assert (diagnostic.at.line, diagnostic.excerpt and diagnostic.excerpt.text) == (14, "  addons:")


def test_what_was_there_is_told() -> None:
    assert apply(ASSETS.encode(), Delete(file=FILE, path="/1/id")).before == "db"
    assert apply(ASSETS.encode(), Add(file=FILE, path="/1/x", value=1)).before is msgspec.UNSET


@pytest.mark.parametrize(
    ("text", "path"), [("&a k: 1\nx: *a\ny: 2\n", "y"), ("k: &a name\n*a : 2\ny: 1\n", "name")]
)
def test_keys_may_have_anchors_or_be_aliases(text: str, path: str) -> None:
    assert edited(text, Replace(file=FILE, path=path, value=3)) == text.replace("2", "3")
