"""What policies put on assets is at rest, and follows from the files alone, whatever was edited (I11)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Position, errors
from lehr.generate.policies.mutation_rules import MutationRule, mutation_rules
from lehr.generate.policies.mutations import Mutations
from lehr.generate.typing.conversion import convert
from lehr.generate.typing.unset_fields import unset_fields
from lehr.model.asset import AssetId
from lehr.model.policy import POLICY, POLICY_TYPE, Policy
from lehr.model.provenance import Derivation
from lehr.model.types import Registry
from lehr.sdk.generation import Generated
from lehr.testing.samples import ROUTE, SERVICE, registry
from lehr.testing.sim.generation import InlineGeneration
from tests.snapshots import MemorySnapshot

LABELS = "lehr.Labels"
HERE = Position("a.yaml", 1, 1)

labels = st.dictionaries(st.sampled_from(["env", "tier"]), st.sampled_from(["x", "y"]), max_size=2)
values = st.one_of(
    st.builds(
        lambda n: {"payload": {"replicas": n}}, st.sampled_from([1, 2, 3, "{{ size(payload.command) }}"])
    ),
    st.builds(lambda n: {"payload": {"replicas": n}}, st.just("{{ payload.replicas + 1 }}")),
    st.builds(
        lambda text: {"payload": {"owner": text}}, st.sampled_from(["a", "{{ id }}", "{{ payload.owner }}!"])
    ),
    st.builds(lambda some: {"addons": {LABELS: {"labels": some}}}, labels),
    st.just(
        {"payload": {"command": ["{{ type }}", "b"]}, "addons": {LABELS: {"labels": {"env": "{{ id }}"}}}}
    ),
)
matches = st.fixed_dictionaries(
    {
        "select": st.sampled_from(
            [
                {"types": [SERVICE]},
                {"types": [SERVICE], "labels": {"env": "x"}},
                {"ids": ["a", "b"]},
                {"all": True},
            ]
        )
    },
    optional={"where": st.sampled_from(["type != 'sample.Service' || payload.replicas < 3", "!(id == 'c')"])},
)
mutate = st.lists(st.tuples(st.sampled_from(["set", "default"]), values), min_size=1, max_size=3).map(
    lambda some: [{"name": f"m{place}", verb: value} for place, (verb, value) in enumerate(some)]
)
ROUTED = [
    {
        "name": "g",
        "asset": {
            "id": "{{ id }}/route",
            "type": ROUTE,
            "payload": {"path": "/{{ payload.replicas }}", "service": "{{ id }}"},
        },
    }
]
ROUTED_SERVICES = {"match": {"select": {"types": [SERVICE]}}, "generate": ROUTED}
FEW = {"select": {"types": [SERVICE]}, "where": "payload.replicas < 2"}
IN_X = {"select": {"types": [SERVICE], "labels": {"env": "x"}}}


def putting(match: dict[str, Any], **verbs: Any) -> dict[str, Any]:
    return {"match": match, "mutate": [{"name": f"m{verb}", verb: value} for verb, value in verbs.items()]}


SOUND = {
    "x": [
        putting({"select": {"types": ["sample.*"]}}, default={"addons": {LABELS: {"labels": {"env": "x"}}}}),
        putting({"select": {"ids": ["a", "made/*"]}}, set={"addons": {LABELS: {"labels": {"env": "x"}}}}),
    ],
    "y": [
        putting(IN_X, default={"payload": {"replicas": 3}}),
        putting(
            IN_X, default={"payload": {"replicas": "{{ size(id) }}"}}, set={"payload": {"command": ["x"]}}
        ),
        putting(FEW, set={"payload": {"replicas": 2}}),
        {**ROUTED_SERVICES, **putting(FEW, set={"payload": {"replicas": 2}})},
    ],
    "z": [
        ROUTED_SERVICES,
        {**ROUTED_SERVICES, "match": IN_X},
        putting({"select": {"types": [ROUTE]}}, set={"payload": {"path": "{{ payload.path }}"}}),
    ],
}
WRONG = [
    putting({"where": "1 +"}, set={"payload": {"replicas": 1}}),
    putting({"select": {"types": [SERVICE]}}, set={"payload": {"replicas": "{{ payload.replicas + 1 }}"}}),
    putting({"select": {"types": [SERVICE]}}, default={"payload": {"replicas": 9}}),
    {**ROUTED_SERVICES, "match": {"select": {"all": True}}},
]
services = st.fixed_dictionaries(
    {"payload": st.fixed_dictionaries({}, optional={"replicas": st.integers(1, 3), "owner": st.just("a")})},
    optional={"addons": st.builds(lambda some: {LABELS: {"labels": some}}, labels)},
)
REGISTRY = Registry((*registry().types.values(), POLICY_TYPE), registry().addons)


def known(some: list[dict[str, Any]]) -> Mutations:
    rules: list[MutationRule] = []
    for number, value in enumerate(some):

        def by(name: str, line: int, number: int = number) -> Derivation:
            return Derivation(f"p.yaml:{number}/{name}", line, "asset", SERVICE)

        policy = msgspec.convert(value, Policy)
        rules += mutation_rules(AssetId(str(number)), policy, by, lambda _pointer: HERE)
    return Mutations(rules, REGISTRY)


@settings(max_examples=300)
@given(st.lists(st.fixed_dictionaries({"match": matches, "mutate": mutate}), max_size=3), services)
def test_to_put_it_twice_is_to_put_it_once(some: list[dict[str, Any]], service: dict[str, Any]) -> None:
    mutations = known(some)
    value = {"id": "a", "type": SERVICE, **service}
    asset, _ = convert(value, REGISTRY, HERE, lambda _pointer: HERE)
    assert asset is not None
    left = unset_fields(value, asset, REGISTRY)
    once, problems = mutations.applied(asset, lambda: left)
    if problems:
        assert once is asset
        return
    put = {item.path for item in once.annotated_by}
    twice, again = mutations.applied(once, lambda: tuple(path for path in left if path not in put))
    assert again == ()
    assert twice.body == once.body


# --- histories ---------------------------------------------------------------------------

GENERATOR = (
    "from lehr.sdk.generator import *\n"
    "@for_each_file('services/*.yaml')\n"
    "def made(file):\n"
    "    yield asset('made/' + file.text().strip(), 'sample.Service', {'owner': 'a'})\n"
    "@for_all_assets('sample.Service', makes='sample.Policy')\n"
    "def told(all):\n"
    "    text = ' '.join(x.id + str(x.payload['replicas']) for x in all)\n"
    "    yield asset('sum', 'sample.Policy', {'text': text})\n"
    "@for_each_asset('sample.Service', ids='b')\n"
    "def owned(one):\n"
    "    labels = {'env': 'x', 'made': one.payload['owner'] or ''}\n"
    "    yield annotate(one.id, 'lehr.Labels', {'labels': labels})\n"
)


def declared(id: str, type: str, rest: dict[str, Any]) -> str:
    return msgspec.json.encode({"id": id, "type": type, **rest}).decode() + "\n"


def policy_file(id: str) -> st.SearchStrategy[str]:
    """Once in ten times a policy that is wrong, or goes badly with others."""
    return st.tuples(
        st.integers(0, 9), st.sampled_from(SOUND[id]), st.sampled_from(WRONG), st.sampled_from(["", "\n\n"])
    ).map(
        lambda drawn: (
            drawn[3] + declared(f"policies/{id}", POLICY, {"payload": drawn[1] if drawn[0] else drawn[2]})
        )
    )


def service_file(id: str) -> st.SearchStrategy[str]:
    return services.map(lambda some: declared(id, SERVICE, some))


edits = st.one_of(
    *(st.tuples(st.just(f"assets/{id}.yaml"), st.none() | service_file(id)) for id in "abc"),
    *(st.tuples(st.just(f"assets/p{id}.yaml"), st.none() | policy_file(id)) for id in "xyz"),
    st.tuples(st.just("generators/g.py"), st.none() | st.just(GENERATOR)),
    st.tuples(st.just("services/s.yaml"), st.none() | st.sampled_from(["m\n", "n\n"])),
)


def generation() -> InlineGeneration:
    types = (*registry().types.values(), POLICY_TYPE)
    return InlineGeneration(Registry(types, registry().addons), SystemClock())


def built(generation: InlineGeneration, files: dict[str, str | bytes]) -> Generated:
    return asyncio.run(generation.generate(MemorySnapshot(files)))


@settings(max_examples=60)
@given(st.lists(st.lists(edits, min_size=1, max_size=4), min_size=1, max_size=6))
def test_whatever_was_edited_a_build_with_policies_equals_a_clean_build(
    steps: list[list[tuple[str, str | None]]],
) -> None:
    files: dict[str, str | bytes] = {"lehr.yaml": "partition: p\n"}
    for id in "abc":
        files[f"assets/{id}.yaml"] = declared(id, SERVICE, {})
    for id, some in SOUND.items():
        files[f"assets/p{id}.yaml"] = declared(f"policies/{id}", POLICY, {"payload": some[0]})
    incremental = generation()
    for step in steps:
        for path, text in step:
            files.pop(path, None)
            if text is not None:
                files[path] = text
        made, clean = built(incremental, files), built(generation(), files)
        assert made.diagnostics == clean.diagnostics
        if not errors(clean.diagnostics):
            assert dict(made.assets) == dict(clean.assets)  # with where each comes from
            assert set(made.declared) == set(clean.declared)
