"""CloudEvents: an event starts a run, a reply event has its answer.

The reply event is in the HTTP response. `routes` is the HTTP, `request` decides which events start a run,
`question` writes the model's message from an event, `reply` the reply event.
"""
