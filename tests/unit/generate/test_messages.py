"""Messages: however one is written, it is stored as protobuf's own library writes it; misfits are told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from google.protobuf import descriptor_pb2, json_format, message_factory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lehr.generate.typing.messages import normalised, renamed
from lehr.model.message_types import DescriptorError, Messages, message_type

PROTO = """
syntax = "proto3";
package shop.v1;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/empty.proto";

// People who answer.
//
// Day and night.
message Team {
  // Where they are reached.
  string mail_address = 1;
  int32 small = 2;
  int64 large = 3;
  uint64 huge = 4;
  double ratio = 5;
  float share = 6;
  bool pager = 7;
  bytes key = 8;
  Level level = 9;
  repeated Member members = 10;
  map<string, Member> by_name = 11;
  map<int64, int32> by_number = 12;
  map<bool, string> by_truth = 13;
  google.protobuf.Timestamp since = 14;
  google.protobuf.Duration rest = 15;
  google.protobuf.Struct free = 16;
  google.protobuf.Int64Value limit = 17;
  google.protobuf.Empty nothing = 18;
  google.protobuf.Value whatever = 19;
  optional int32 maybe = 20;
  oneof place { string room = 21; Member desk = 22; }
  Team parent = 23;
  repeated Level levels = 24;
  uint32 positive = 25;
  message Member { string name = 1; int32 age = 2; }
}
enum Level { LEVEL_UNSPECIFIED = 0; GOLD = 1; SILVER = 2; }
"""
OLD = """
syntax = "proto2";
package shop.v0;
message Thing { required string name = 1; optional int32 size = 2 [default = 7]; repeated int32 at = 3; }
"""


def described(folder: Path, *options: str, **protos: str) -> bytes:
    for name, text in protos.items():
        (folder / f"{name}.proto").write_text(text)
    out = folder / "set.binpb"
    names = [f"{name}.proto" for name in protos]
    command = [sys.executable, "-W", "ignore", "-m", "grpc_tools.protoc", f"-I{folder}"]
    subprocess.run([*command, f"--descriptor_set_out={out}", *options, *names], check=True, cwd=folder)
    return out.read_bytes()


@pytest.fixture(scope="module")
def descriptors(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("protos")
    return described(folder, "--include_imports", "--include_source_info", team=PROTO, thing=OLD)


@pytest.fixture(scope="module")
def messages(descriptors: bytes) -> Messages:
    known = Messages()
    known.add(descriptors)
    return known


@pytest.fixture(scope="module")
def schema(messages: Messages) -> dict[str, Any]:
    found = messages.schema("shop.v1.Team")
    assert found is not None
    return found


@pytest.fixture(scope="module")
def team(descriptors: bytes) -> Any:
    files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
    return message_factory.GetMessages(files)["shop.v1.Team"]


def stored(value: Any, schema: dict[str, Any]) -> Any:
    whole, problems = normalised(value, schema)
    assert problems == []
    return whole


def theirs(value: Any, team: Any) -> Any:
    """What protobuf's own library makes of it."""
    message = json_format.ParseDict(value, team())
    return json_format.MessageToDict(message, always_print_fields_with_no_presence=True)


def told(value: Any, schema: dict[str, Any]) -> list[tuple[str, str]]:
    return [(item.pointer, item.what) for item in normalised(value, schema)[1]]


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"mail_address": "a", "large": 5, "huge": "18446744073709551615", "small": "-3", "positive": 2.0},
        {"mailAddress": None, "members": None, "parent": None, "whatever": None},
        {"ratio": 1, "share": 0.1},
        {"ratio": "NaN", "share": "-Infinity"},
        {"ratio": "1e3", "share": 16777217},
        {"key": "_-8", "level": 2, "levels": ["GOLD", 0]},
        {"by_name": {"x": {"name": "a"}}, "byNumber": {"7": 1, "-0": 2}, "byTruth": {"true": "t"}},
        {"since": "2026-11-21T18:00:00.120+01:00", "rest": "1.50s"},
        {"since": "2026-11-21T00:30:00.000000001+01:30", "rest": "-0.000001s"},
        {"rest": "0s"},
        {"free": {"a": [1, 2.5, None, {"b": "c"}]}, "limit": 4, "nothing": {}, "whatever": [1, "x"]},
        {"maybe": 0, "room": ""},
        {"desk": {"age": 3}, "parent": {"parent": {"small": 1}}, "members": [{}, {"name": "n"}]},
    ],
)
def test_what_is_stored_is_what_protobuf_itself_would_write(
    value: Any, schema: dict[str, Any], team: Any
) -> None:
    whole = stored(value, schema)
    assert whole == theirs(value, team)
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(whole)
    assert stored(whole, schema) == whole


numbers = st.integers(-(2**63), 2**63 - 1)
numbers_of_age = st.integers(0, 9)
leaves: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "mail_address": st.text(),
        "small": st.integers(-(2**31), 2**31 - 1) | st.integers(-(2**31), 2**31 - 1).map(str),
        "large": numbers | numbers.map(str),
        "huge": st.integers(0, 2**64 - 1).map(str),
        "ratio": st.floats(allow_nan=False).map(lambda x: x if abs(x) != float("inf") else "Infinity"),
        "share": st.floats(width=32, allow_nan=False, allow_infinity=False),
        "pager": st.booleans(),
        "level": st.sampled_from(["GOLD", "SILVER", 0, 1]),
        "members": st.lists(
            st.fixed_dictionaries({}, optional={"name": st.text(), "age": st.integers(0, 9)})
        ),
        "by_number": st.dictionaries(numbers.map(str), st.integers(-5, 5), max_size=3),
        "free": st.dictionaries(
            st.text(max_size=3), st.none() | st.booleans() | st.floats(-9, 9) | st.text()
        ),
        "limit": numbers,
        "rest": st.integers(-(10**9), 10**9).map(lambda n: f"{n // 1000}.{abs(n) % 1000:03}s"),
        "maybe": st.integers(0, 5) | st.none(),
    },
)
values = st.recursive(leaves, lambda inner: st.tuples(leaves, inner).map(lambda p: {**p[0], "parent": p[1]}))


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(value=values)
def test_any_message_is_stored_as_protobuf_would_write_it(
    value: Any, schema: dict[str, Any], team: Any
) -> None:
    whole = stored(value, schema)
    assert whole == theirs(value, team)
    assert stored(msgspec.json.decode(msgspec.json.encode(whole)), schema) == whole


def test_all_misfits_are_told_each_where_it_was_written(schema: dict[str, Any]) -> None:
    value = {
        "mail_adress": "x",
        "mail_address": 5,
        "mailAddress": "y",
        "small": 2**31,
        "huge": -1,
        "pager": "yes",
        "key": "???",
        "level": "BRONZE",
        "levels": [7],
        "members": [{"name": 1}, None],
        "by_name": {"x": {"nam": "a"}},
        "by_number": {"seven": 1, "1": 1, "01": 2},
        "by_truth": {"maybe": "t"},
        "since": "yesterday",
        "rest": 5,
        "room": "a",
        "desk": {},
        "parent": [],
        "share": 1e39,
    }
    assert told(value, schema) == [
        ("/mail_adress", "unknown field `mail_adress`"),
        ("/mail_address", "`mail_address` is the number 5, not a string"),
        ("/mailAddress", "mailAddress is given twice, under both of its names"),
        ("/small", "`small` is the number 2147483648, not a 32-bit integer"),
        ("/huge", "`huge` is the number -1, not a non-negative 64-bit integer"),
        ("/pager", "`pager` is the string 'yes', not `true` or `false`"),
        ("/key", "`key` is the string '???', not bytes in base64"),
        ("/level", "`level` is the string 'BRONZE', which is not one of its values"),
        ("/levels/0", "`levels[0]` is the number 7, which is not one of its values"),
        ("/members/0/name", "`members[0].name` is the number 1, not a string"),
        ("/members/1", "`members[1]` is null"),
        ("/by_name/x/nam", "unknown field `nam` in `by_name.x`"),
        ("/by_number/seven", "`by_number.seven` is the string 'seven', not a 64-bit integer"),
        ("/by_number/01", "by_number.01 is given twice, in two spellings"),
        ("/by_truth/maybe", "the key `maybe` is neither `true` nor `false`"),
        ("/since", "`since` is the string 'yesterday', not a time such as `2026-11-21T18:00:00Z`"),
        ("/rest", "`rest` is the number 5, not a number of seconds such as `1.5s`"),
        ("/parent", "`parent` is a list, not a mapping"),
        ("/share", "`share` is the number 1e+39, not a 32-bit number"),
        ("/desk", "it has `room` and `desk`"),
    ]


def test_what_protobuf_2_requires_is_required_and_its_defaults_stay_unsaid(messages: Messages) -> None:
    schema = messages.schema("shop.v0.Thing")
    assert schema is not None
    assert told({}, schema) == [("", "`name` is missing")]
    assert stored({"name": "a"}, schema) == {"name": "a", "at": []}


def test_comments_are_meanings(messages: Messages, schema: dict[str, Any]) -> None:
    assert messages.meaning("shop.v1.Team") == "People who answer.\n\nDay and night."
    fields = schema["$defs"]["shop.v1.Team"]["properties"]
    assert fields["mailAddress"]["description"] == "Where they are reached."


def test_fields_get_the_names_that_they_are_stored_under(schema: dict[str, Any]) -> None:
    value = {"mail_address": 1, "by_name": {"mail_address": {"nam": 1}}, "parent": {"by_truth": 2}, "x": 3}
    assert renamed(value, schema) == {
        "mailAddress": 1,
        "byName": {"mail_address": {"nam": 1}},
        "parent": {"byTruth": 2},
        "x": 3,
    }


def test_an_installed_message_class_is_a_type(team: Any) -> None:
    found = message_type(team, enforced=False)
    assert found.name == "shop.v1.Team"
    assert not found.enforced


@pytest.mark.parametrize(("content", "why"), [(b"", "any file"), (b"\xff\xff", "cannot be read")])
def test_what_is_no_descriptor_set_is_told(content: bytes, why: str) -> None:
    with pytest.raises(DescriptorError, match=why):
        Messages().add(content)


def test_a_set_without_its_imports_is_told(tmp_path: Path) -> None:
    other = 'syntax = "proto3"; package a; message B {}'
    user = 'syntax = "proto3"; package c; import "other.proto"; message D { a.B b = 1; }'
    described(tmp_path, other=other)
    with pytest.raises(DescriptorError, match=r"user\.proto"):
        Messages().add(described(tmp_path, user=user))


def test_files_of_google_need_not_be_included(tmp_path: Path) -> None:
    known = Messages()
    known.add(described(tmp_path, team=PROTO))
    assert known.names == ("shop.v1.Team", "shop.v1.Team.Member")


def test_without_protobuf_a_descriptor_set_says_what_to_install(
    descriptors: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(DescriptorError, match=r"pip install 'lehr\[protobuf\]'"):
        Messages().add(descriptors)


def test_protobuf_is_not_imported_before_there_is_a_descriptor_set() -> None:
    imports = "import sys, lehr.generate.engine.worker, lehr.model.message_types"
    code = f"{imports}; sys.exit('google.protobuf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
