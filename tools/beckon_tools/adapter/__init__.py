"""The HTTP adapter: one service that turns calls into requests to APIs that know nothing of events.

Here belong the rules (what an EventType's annotation `beckon.dev/http` may say, and the request that a
call becomes by it), the guard of the way out, and the service. It needs the extra `beckon-tools[adapter]`;
nothing in the rest of the SDK imports it.
"""
