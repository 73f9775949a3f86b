"""CloudEvents: an event starts a run of an agent, and the answer is a reply event in the HTTP response.

`routes` is the HTTP, `request` decides which events start a run, `question` writes the model's message from
an event, `reply` the reply event.
"""
