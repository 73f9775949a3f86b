"""Open Responses (openresponses.org, after OpenAI's Responses API), with its conversations.

What belongs here is the wire: items and events of the API, made of what the engine tells and the store
keeps. No run is made here and no rule of a run is decided here.
"""
