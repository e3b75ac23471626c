"""Values of Terraform's type system: how they are written, encoded, completed, compared and hidden.

In: schemas and plain data. Out: values, as `provider.py` defines them, bytes, and diagnostics. All pure.

    cty_types.py      types of blocks and nested attributes
    numbers.py        numbers, without loss
    msgpack_codec.py  values as MessagePack, as they are sent
    json_codec.py     values as JSON, as they are kept
    canonical.py      the one order of sets, and equality
    nulls.py          values in which nothing is set
    conversion.py     plain data as a type: what Terraform converts, too
    configured.py     what people write as a configuration, and what is wrong with it
    proposed.py       the state that a provider is asked to plan
    set_elements.py   which element of a set was which before
    secret_paths.py   where secrets are in a value
    redaction.py      messages without secrets

Architecture invariants: encoding a decoded value gives the same value, to the last digit; equal values have
equal bytes; nothing here raises for what people write, all of it is a diagnostic.
"""
