"""Open Responses (openresponses.org, after OpenAI's Responses API), with its conversations.

The wire belongs here: items and events of the API, made from the engine's events and the store. No run is
made here, and no rule of a run is decided here.
"""
