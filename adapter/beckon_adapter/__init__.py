"""The HTTP adapter: one service between calls and ordinary HTTP APIs.

It turns a call into a request to an API; the API knows nothing of events. This package has the rules (the
content of an EventType's annotation `beckon.dev/http`, and the request made from it), the checks of
outgoing requests, and the service. It is itself a tool of the SDK: `beckon_tools` serves its calls.
"""
