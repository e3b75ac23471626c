"""`lehr.HttpResource`: one resource of any HTTP API that speaks JSON.

In: payloads `HttpResource`. Out: a resource whose declared fields are as intended, or none.

    payload.py   what people write                answers.py   answers as errors and links: pure
    places.py    URLs: pure                       requests.py  what to send: pure
    fields.py    values in JSON documents: pure   client.py    sends requests
    compare.py   diff and its effects: pure       finding.py   finds a resource, by handle or field
    handle.py    what identifies it: pure         discovery.py drafts intent from a collection
                                                  plugin.py    the asset plugin

Architecture invariants: production is what a GET answers; a write whose answer is missing is looked up before
anything else is sent; credentials go to the declared origin only, over https or loopback; a resource is never
created while it is unknown whether it was; whatever a server answers takes bounded time and memory.
"""
