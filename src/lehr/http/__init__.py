"""Reads intent and its outcome over HTTP.

In: a function that opens a `Store` for reading, and an address. Out: JSON and streams of JSON lines; every
error as problem+json with what, why, and how to fix it.

Architecture invariants:

* Nothing is written, and no commands are accepted. One exception: a client with a secret can trigger a check
  of the source.
* Only `access` decides who may read, before anything else is done with a request.
* Requests are bounded in time and space before they are processed; waiting ones are bounded in number.
  Nothing is buffered for clients that do not read.
* Only this package and `lehr.client` know the HTTP API; `lehr.query` computes the answers.

| module | what |
|---|---|
| `limits` | how much a client may ask for |
| `problems` | errors as problem+json |
| `parameters` | parameters of a request: types, limits, all their problems |
| `questions` | the parts of a resource |
| `resources`, `records` | the resources of intent and of the store's records, and how they are answered |
| `explanations`, `operations` | resources that explain; pushes and commands |
| `catalogue` | all of these |
| `openapi` | the OpenAPI document, made from those |
| `connection`, `remote` | the client side: a `Store` over HTTP, for commands |
| `remote_part`, `remote_records` | parts of it |
| `readers` | stores and threads for answers, with clients taking turns |
| `sieves`, `sieve_process` | heavy filters, run in child processes |
| `target_selection` | questions to target selection |
| `selection_service` | the client side of target selection by another program |
| `hooks` | webhooks that trigger a check of the source after a git push |
| `watch_streams`, `lines` | streams of batches, and their lines |
| `outgoing_responses` | responses being sent |
| `access` | which requests may be answered |
| `application` | from a request to a response; content negotiation, and the check of `Host` |
| `protocol`, `server` | connections, and the server as a whole |
"""
