"""CloudEvents: an event starts a run, a reply event has its answer.

The reply event is in the HTTP response. `routes` is the HTTP, `request` decides which events start a run,
`messages` makes a message of an event, and a reply event of an answer. `owed_answers` sends the answers for
which no connection waits.
"""
