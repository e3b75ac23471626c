"""Intent and what became of it, read over HTTP.

In: a function that opens a `Store` for reading, and an address. Out: JSON, and streams of it; every error
as problem+json with what, why, and how to mend it.

Architecture invariants:

* Nothing is written, and nobody commands anything: who asks is not known here. But for one thing: who knows
  a secret can have the source looked at.
* What is asked for is bounded in time and space before it is looked at; what waits is bounded in number.
  Nothing is buffered for who does not read.
* The only place that knows HTTP; what is answered, `lehr.query` knows.

| module | what |
|---|---|
| `limits` | how much anybody may ask for |
| `problems` | errors as problem+json |
| `negotiation` | what a request says of the answers that it takes, and where it thinks it is |
| `parameters` | parameters of a request: types, limits, all that is wrong with them |
| `questions` | what everything that can be asked for is made of |
| `resources`, `records` | what can be asked for, and how it is answered |
| `openapi` | the OpenAPI document, made from those |
| `connection`, `remote` | the other side: a `Store` over HTTP, for commands |
| `readers` | stores and threads to answer in, clients by turns |
| `sieves`, `sieve_process` | heavy filters, asked in child processes |
| `hooks` | has the source looked at when somebody has pushed |
| `watch_streams`, `lines` | streams of batches, and what they are made of |
| `outgoing` | answers on their way |
| `application` | from a request to an answer |
| `protocol`, `server` | connections, and the server as a whole |
"""
