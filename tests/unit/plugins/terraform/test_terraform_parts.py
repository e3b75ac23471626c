"""The pure parts of Terraform resources: payloads, placeholders, handles, overlays, diffs, outputs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lehr.base.errors import StalledError, TransientError
from lehr.model.handle import MOST_BYTES
from lehr.model.secret import Secret
from lehr.plugins.terraform import placeholders
from lehr.plugins.terraform.compare import KNOWN_LATER, Secrecy, compared, outputs_of, secrecy_of
from lehr.plugins.terraform.differences import born_secrets, differences
from lehr.plugins.terraform.errors import Meaning, described, error_of_look, meaning
from lehr.plugins.terraform.handle import NO_HANDLE, TerraformHandle, parse, records
from lehr.plugins.terraform.observe import laid_over, residue
from lehr.plugins.terraform.payload import TYPES, TerraformProvider, TerraformResource
from lehr.plugins.terraform.provider import (
    UNKNOWN,
    Attribute,
    Block,
    Diagnostic,
    NestedBlock,
    Nesting,
    Planned,
    ProviderError,
    Severity,
    Value,
)
from lehr.plugins.terraform.values.nulls import null_value
from lehr.sdk.secrets import DIFFERS, HIDDEN, SecretValue
from lehr.validate.secrets import secrets_in
from tests.terraform.assets import REGISTRY, queue, resource
from tests.terraform.cloud import KEY, PARAMETER, QUEUE

# --- payloads ------------------------------------------------------------------------------


def payload(**fields: Any) -> TerraformResource:
    return msgspec.convert({"provider": "cloud/aws", "type": "aws_vpc", **fields}, TerraformResource)


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"secrets": {"a": {"secret": "env:A"}}}, "no text of `config` uses ${a}"),
        ({"config": {"x": "${A}"}, "secrets": {"A": {"secret": "env:A"}}}, "invalid name 'A'"),
        (
            {
                "config": {"x": "${a}"},
                "secrets": {"a": {"secret": "env:A"}},
                "references": {"a": {"asset": "b", "output": "id"}},
            },
            "in `references` and in `secrets`",
        ),
        ({"born_secrets": {"secret": "file:relative"}}, "an absolute path"),
        ({"born_secrets": {"secret": "/run/x"}}, "`file:`"),
        ({"type": "AWS VPC"}, "type"),
        ({"config": {"x": "y" * 70_000}}, "at most 65,536"),
        ({"imports": "x"}, "unknown field"),
    ],
)
def test_a_wrong_payload_is_refused(fields: dict[str, Any], word: str) -> None:
    with pytest.raises(msgspec.ValidationError) as found:
        payload(**fields)
    assert word in str(found.value)


def test_a_digest_is_one() -> None:
    with pytest.raises(msgspec.ValidationError, match="64 lower-case"):
        msgspec.convert({"path": "x", "sha256": "ABC"}, TerraformProvider)


def test_references_are_dependencies_and_the_provider_is_not_pushed() -> None:
    mentions = {item.target: item for item in REGISTRY.mentions(queue(1))}
    assert mentions["cloud/identity"].goes_first  # type: ignore[index]
    assert not mentions["cloud/provider"].goes_first  # type: ignore[index]
    assert mentions["cloud/provider"].types == ("lehr.TerraformProvider",)  # type: ignore[index]
    assert REGISTRY.inert("lehr.TerraformProvider")
    assert {place for place, _secret in REGISTRY.secrets(queue(1))} == {"/payload/secrets/password"}


def test_files_of_secrets_are_claimed() -> None:
    asset = resource("cloud_key", {"user": "a"}, born_secrets={"secret": "file:/run/key", "b": "discard"})
    assert REGISTRY.claims(asset) == ("file:/run/key",)
    assert len(TYPES) == 3


# --- placeholders --------------------------------------------------------------------------


def test_a_whole_text_becomes_the_value_and_a_part_becomes_text() -> None:
    config = {"a": "${n}", "b": ["port ${n}/${t}", {"c": "${t}"}], "d": "${aws:name} ${other}", "e": 1}
    values = {"n": 80, "t": True}
    assert placeholders.filled(config, values) == {
        "a": 80,
        "b": ["port 80/true", {"c": True}],
        "d": "${aws:name} ${other}",
        "e": 1,
    }
    assert placeholders.names_in(config) == {"n", "t", "other"}


def test_an_unknown_value_makes_its_text_unknown() -> None:
    assert placeholders.filled({"a": "x ${n}"}, {"n": UNKNOWN}) == {"a": UNKNOWN}


def test_a_list_is_no_part_of_a_text() -> None:
    with pytest.raises(ValueError, match=r"\$\{n\} is not a text") as found:
        placeholders.filled("x ${n}", {"n": ["hunter2"]})
    assert "hunter2" not in str(found.value)


def test_a_value_is_not_searched_for_names() -> None:
    assert placeholders.filled("${a}", {"a": "${b}", "b": "x"}) == "${b}"


def test_uses_are_paths() -> None:
    assert placeholders.uses({"a": [{"b": "${s}"}], "c": "${t}"}, {"s"}) == {("a", 0, "b")}


# --- handles -------------------------------------------------------------------------------


@given(
    st.builds(
        TerraformHandle,
        id=st.text(max_size=50),
        private=st.binary(max_size=9000),
        residue=st.dictionaries(st.text(max_size=20), st.text(max_size=400), max_size=30),
        applied=st.dictionaries(st.text(max_size=20), st.integers() | st.booleans(), max_size=30),
    )
)
def test_a_handle_always_fits_and_keeps_its_id(handle: TerraformHandle) -> None:
    text = handle.text()
    assert len(text.encode()) <= MOST_BYTES
    assert parse(text).id == handle.id


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"id": 1}'])
def test_what_is_no_handle_is_an_empty_one(text: str) -> None:
    assert parse(text) == NO_HANDLE


def test_records_identify_references_and_not_values() -> None:
    secrets = {"s": Secret("env:S", version="1")}
    config = {"a": "${s}", "b": "${r}", "c": True, "d": 3, "e": None, "f": "x"}
    one = records(config, {"r": "arn"}, secrets)
    assert one["c"] is True
    assert one["d"] == 3
    assert "e" not in one
    assert all(one[name].startswith("#") for name in "abf")
    assert one["a"] != records(config, {"r": "arn"}, {"s": Secret("env:S", version="2")})["a"]
    assert one["b"] != records(config, {"r": "other"}, secrets)["b"]
    assert one["f"] == records(config, {"r": "other"}, {"s": Secret("env:S", version="2")})["f"]


# --- overlays ------------------------------------------------------------------------------


def state(block: Block, **values: Value) -> Value:
    return {**null_value(block), **values}


def test_what_was_applied_is_laid_over_an_import() -> None:
    configured = state(QUEUE, name="a", force_destroy=True, tags={"x": "y"})
    handle = TerraformHandle(id="1", residue={"arn": "arn:a"}, applied={"name": "#1", "force_destroy": False})
    applied = {"name": "#1", "force_destroy": True, "tags": "#2"}
    found = laid_over(QUEUE, state(QUEUE, id="1"), configured, applied, handle)
    assert found["id"] == "1"
    assert found["arn"] == "arn:a"
    assert found["name"] == "a"  # applied as it is now
    assert found["force_destroy"] is False  # as it was applied
    assert found["tags"] is None  # another one was applied, which is not known


def test_what_the_provider_has_made_is_not_taken_from_a_guess_of_the_import() -> None:
    handle = TerraformHandle(id="1", residue={"arn": "arn:a", "delay": 3})
    found = laid_over(QUEUE, state(QUEUE, id="1", arn="arn:of/arn:a", delay=5), None, {}, handle)
    assert found["arn"] == "arn:a"
    assert found["delay"] == 5  # intent may have it, so a person may have changed it


def test_defaults_of_the_provider_are_kept_since_no_api_may_return_them() -> None:
    made = state(QUEUE, id="1", name="a", arn="arn:a", force_destroy=False, delay=3)
    kept = residue(QUEUE, made, state(QUEUE, name="a", delay=3))
    assert kept == {"id": "1", "arn": "arn:a", "force_destroy": False}
    handle = TerraformHandle(id="1", residue=kept, applied={"name": "#1"})
    assert (
        laid_over(QUEUE, state(QUEUE, id="1"), state(QUEUE, name="a"), {}, handle)["force_destroy"] is False
    )


def test_an_adopted_resource_is_as_intended_where_nothing_is_known() -> None:
    configured = state(QUEUE, name="a", force_destroy=True, policy=UNKNOWN)
    found = laid_over(QUEUE, state(QUEUE, id="1"), configured, {}, NO_HANDLE)
    assert (found["name"], found["force_destroy"], found["policy"]) == ("a", True, None)


def test_a_type_without_import_begins_with_its_id() -> None:
    assert laid_over(QUEUE, None, None, {}, TerraformHandle(id="7"))["id"] == "7"


def test_write_only_arguments_are_in_no_state() -> None:
    block = Block(attributes=(Attribute(name="a", type="string", optional=True, write_only=True),))
    assert laid_over(block, None, {"a": "secret"}, {}, NO_HANDLE) == {"a": None}


# --- differences and diffs -----------------------------------------------------------------


def plan(value: Value, *replaces: tuple[str, ...], warnings: tuple[Diagnostic, ...] = ()) -> Planned:
    return Planned(value, b"", tuple(replaces), warnings=warnings)


def test_equal_states_have_no_diff_even_if_something_would_replace() -> None:
    same = state(QUEUE, id="1", name="a", zones=["a", "b"], rule=[])
    assert compared(QUEUE, same, plan(dict(same), ("name",))).empty


def test_blocks_and_maps_are_compared_by_part() -> None:
    rule = {"port": 1, "token": None}
    before = state(QUEUE, name="a", tags={"x": "1", "z": "3"}, rule=[rule])
    after = state(QUEUE, name="a", tags={"x": "2", "z": "3"}, rule=[{"port": 2, "token": None}])
    assert [item.path for item in differences(QUEUE, before, after)] == [("tags", "x"), ("rule", 0, "port")]


def test_a_block_in_which_nothing_is_set_still_counts() -> None:
    inner = Block(attributes=(Attribute(name="x", type="string", optional=True),))
    block = Block(blocks=(NestedBlock("b", inner, Nesting.LIST),))
    assert [item.path for item in differences(block, {"b": []}, {"b": [{"x": None}]})] == [("b",)]


def test_sensitive_values_are_hidden_by_place_and_by_value() -> None:
    before = state(PARAMETER, id="p", name="p", value="old-secret", description="knows old-secret")
    after = {**before, "value": "new-secret", "description": "knows new-secret"}
    secrecy = secrecy_of(PARAMETER, [SecretValue(b"new-secret")], [], before, after)
    changes = {item.path: item for item in compared(PARAMETER, before, plan(after), secrecy).changes}
    assert (changes["value"].intended, changes["value"].observed) == (HIDDEN, DIFFERS)
    assert "secret" not in str(changes["description"]).replace("[secret]", "")


def test_secrets_of_intent_are_hidden_whatever_the_schema_has() -> None:
    before, after = state(QUEUE, name="a", policy="x"), state(QUEUE, name="a", policy="abc")
    secrecy = Secrecy(paths=frozenset({("policy",)}))
    [change] = compared(QUEUE, before, plan(after), secrecy).changes
    assert (change.intended, change.observed) == (HIDDEN, DIFFERS)
    assert Secrecy(paths=frozenset({("rule", "token")})).covers(("rule", 0, "token"))
    assert Secrecy(paths=frozenset({("rule", 0, "token")})).covers(("rule",))
    assert not Secrecy(paths=frozenset({("rule", 0, "token")})).covers(("name",))


@pytest.mark.parametrize("spelt", ['a "b" c', r"a \"b\" c", "a+%22b%22+c", "a%20%22b%22%20c", "YSAiYiIgYw"])
def test_secrets_are_found_in_other_spellings(spelt: str) -> None:
    secrecy = secrecy_of(QUEUE, [SecretValue(b'a "b" c')], [])
    assert secrecy.hidden.shown(f"x {spelt} y") != f"x {spelt} y"


def test_replacing_is_destructive_and_named() -> None:
    before, after = state(QUEUE, id="1", name="a"), state(QUEUE, id=UNKNOWN, name="b")
    found = compared(QUEUE, before, plan(after, ("name",)))
    assert found.effects.destructive
    assert [item.path for item in found.changes] == ["resource", "id", "name"]
    assert found.changes[1].intended == KNOWN_LATER
    assert not compared(QUEUE, before, plan(state(QUEUE, id="1", name="b"), ("policy",))).effects.destructive


def test_a_creation_lists_what_is_known() -> None:
    found = compared(QUEUE, None, plan(state(QUEUE, id=UNKNOWN, name="a", arn=UNKNOWN)))
    assert [(item.path, item.intended) for item in found.changes] == [("resource", "present"), ("name", "a")]
    assert not found.effects.destructive


def test_warnings_are_notes() -> None:
    warning = Diagnostic(Severity.WARNING, "old", "use\nanother", ("name",))
    same = state(QUEUE, name="a")
    found = compared(QUEUE, same, plan(same, warnings=(warning, warning)))
    assert found.empty
    assert found.notes == ("provider warns: old: use | another (at name)",)


def test_a_diff_is_short() -> None:
    tags = {f"tag-{number}": "v" * 5000 for number in range(200)}
    found = compared(QUEUE, state(QUEUE, name="a", tags={}), plan(state(QUEUE, name="a", tags=tags)))
    assert len(msgspec.json.encode(found)) < 16_384
    assert found.changes[-1].path == "more"


# --- outputs -------------------------------------------------------------------------------


def test_outputs_are_public_short_and_few() -> None:
    block = Block(
        attributes=(
            Attribute(name="id", type="string", computed=True),
            Attribute(name="password", type="string", optional=True),
            Attribute(name="hidden", type="string", computed=True, sensitive=True),
            Attribute(name="long", type="string", computed=True),
            Attribute(name="later", type="string", computed=True),
            *(Attribute(name=f"a{number}", type="string", computed=True) for number in range(40)),
        )
    )
    value = state(block, id="1", password="plain", hidden="x", long="y" * 2000, later=UNKNOWN)
    value |= {f"a{number}": "z" * 500 for number in range(40)}
    found = outputs_of(block, value, secrets_in=secrets_in)
    assert found["id"] == "1"
    assert not {"password", "hidden", "long", "later"} & found["attributes"].keys()
    assert 5 < len(found["attributes"]) < 40
    assert len(msgspec.json.encode(found)) < 8192


def test_nothing_has_no_outputs() -> None:
    assert outputs_of(QUEUE, None) == {}


def test_types_that_make_secrets() -> None:
    assert born_secrets(KEY) == ["secret"]
    assert born_secrets(PARAMETER) == []
    nested = Block(blocks=(NestedBlock("b", KEY, Nesting.LIST),))
    assert born_secrets(nested) == ["b.secret"]


# --- errors --------------------------------------------------------------------------------


def problem(summary: str, detail: str = "") -> Diagnostic:
    return Diagnostic(Severity.ERROR, summary, detail)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ThrottlingException: Rate exceeded", Meaning.PASSING),
        ("operation error SQS: api error RequestThrottled", Meaning.PASSING),
        ("StatusCode: 503, ServiceUnavailable", Meaning.PASSING),
        ("dial tcp: lookup sqs: no such host", Meaning.UNANSWERED),
        ("context deadline exceeded", Meaning.UNANSWERED),
        ("timeout while waiting for state to become 'available'", Meaning.UNANSWERED),
        ("AccessDenied: User is not authorized to perform", Meaning.REFUSED),
        ("ExpiredToken: The security token is expired", Meaning.REFUSED),
        ("EntityAlreadyExists: Role with name x already exists.", Meaning.EXISTS),
        ("couldn't find resource", Meaning.MISSING),
        ("Your query returned no results. Please change your criteria and try again.", Meaning.MISSING),
        ("NoSuchEntity: The role with name x cannot be found", Meaning.MISSING),
        ("Invalid value for argument", Meaning.OTHER),
    ],
)
def test_errors_are_understood_by_their_words(text: str, expected: Meaning) -> None:
    assert meaning([problem(text)]) is expected
    assert meaning([problem("failed", text)]) is expected


def test_warnings_mean_nothing() -> None:
    assert meaning([Diagnostic(Severity.WARNING, "AccessDenied")]) is Meaning.OTHER


def test_messages_are_short_one_line_and_without_controls() -> None:
    text = described([problem("a\x1b[31m", "b\n\nc" * 500)])
    assert len(text) < 410
    assert text.isprintable()


def test_a_look_that_fails_is_retried_unless_a_person_is_needed() -> None:
    other = ProviderError([problem("odd")])
    assert isinstance(error_of_look("it", other), TransientError)
    assert isinstance(error_of_look("it", other, known_to_pass=False), StalledError)
    assert isinstance(error_of_look("it", ProviderError([problem("Forbidden")])), StalledError)


def test_a_handle_can_be_changed_for_its_text() -> None:
    assert parse(replace(TerraformHandle(id="1"), tainted="push-1").text()).tainted == "push-1"
