"""The page: what production is, and why it is not what intent asks for. Reads without JavaScript.

A screen shows answers of resources below `/v1`, and nothing else: what it shows, any program can ask for. It
is a function in `lehr.page.screens` that asks an `Api` and returns what its template shows, the template in
`templates/`, and one line in `SCREENS`. Its path is below that of its partition, and its query belongs to it.

Templates escape everything, name no style and run no script; a strict content security policy makes sure of
that. `static/lehr.js` only replaces the content of a page by a newer one.
"""
