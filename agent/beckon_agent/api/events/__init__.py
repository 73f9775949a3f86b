"""CloudEvents: an event starts a run of an agent, and the answer is a reply event in the HTTP response.

`routes` is the HTTP, `intake` what is taken and what not, `question` what the model is told of an event,
`answer` what is told to the one who sent it.
"""
