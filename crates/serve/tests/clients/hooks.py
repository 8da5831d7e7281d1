"""What schemathesis does not know by itself: how a SPARQL query is sent as a body."""

import schemathesis


@schemathesis.serializer("application/sparql-query")
def as_text(_context, value):
    return str(value).encode()
