"""Schemas for tests of values."""

from lehr.plugins.terraform.provider import Attribute, Block, NestedBlock, NestedObject, Nesting

RULE = Block(
    attributes=(
        Attribute(name="port", type="number", required=True),
        Attribute(name="name", type="string", optional=True),
        Attribute(name="id", type="string", computed=True),
        Attribute(name="key", type="string", optional=True, sensitive=True),
    )
)

NESTED = NestedObject(
    (
        Attribute(name="host", type="string", optional=True),
        Attribute(name="zone", type="string", optional=True, computed=True),
        Attribute(name="token", type="string", optional=True, write_only=True),
    ),
    Nesting.SET,
)

BLOCK = Block(
    attributes=(
        Attribute(name="id", type="string", computed=True),
        Attribute(name="name", type="string", required=True),
        Attribute(name="size", type="number", optional=True),
        Attribute(name="enabled", type="bool", optional=True),
        Attribute(name="class", type="string", optional=True, computed=True),
        Attribute(name="zones", type=["set", "string"], optional=True),
        Attribute(name="labels", type=["map", "string"], optional=True),
        Attribute(name="pairs", type=["list", ["object", {"a": "string", "b": "number"}]], optional=True),
        Attribute(name="any", type="dynamic", optional=True),
        Attribute(name="password", type="string", optional=True, sensitive=True, deprecated=True),
        Attribute(name="servers", nested=NESTED, optional=True, computed=True),
    ),
    blocks=(
        NestedBlock("rule", RULE, Nesting.SET, most=3),
        NestedBlock("step", RULE, Nesting.LIST),
        NestedBlock("only", RULE, Nesting.SINGLE),
        NestedBlock(
            "group", Block(attributes=(Attribute(name="x", type="number", optional=True),)), Nesting.GROUP
        ),
        NestedBlock("by_key", RULE, Nesting.MAP),
    ),
)
