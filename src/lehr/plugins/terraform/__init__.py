"""`lehr.TerraformResource`: resources of Terraform providers, over the providers' own protocol.

In: payloads of `lehr.TerraformProvider`, `lehr.TerraformResource` and `lehr.TerraformData`. Out: resources as
intended, or none. No terraform binary, no HCL and no state file take part.

    payload.py       what people write: pure          reading.py   reads it, with secrets and outputs
    placeholders.py  `${NAME}` in it: pure            providers.py one process per configuration, limited
    intent.py        its meaning, as values: pure     finding.py   finds a resource
    handle.py        what identifies one: pure        looks.py     finds it, and has the provider plan
    observe.py       what to read it with: pure       changes.py   carries the plan out
    differences.py   what differs: pure               born.py      keeps secrets that providers make
    compare.py       diff and outputs: pure           memory.py    what only this process knows
    errors.py        what errors mean: pure           discovery.py drafts intent
    drafts.py        configurations of states: pure   launch.py    starts providers with `wire`
    tfstate.py       state files of Terraform: pure   plugin.py    the asset plugin

    provider.py  what a configured provider can be asked, as a protocol, and its values: pure
    values/      values of Terraform's type system: pure
    wire/        providers over their protocol; needs the extra `lehr[terraform]`

Architecture invariants: production is what a provider reads; the provider's plan alone decides what differs;
a resource is never created while it is unknown whether it was; nothing that a provider carries out is
cancelled; no secret, and nothing that was resolved from one, is in a diff, handle, output or message.
"""
