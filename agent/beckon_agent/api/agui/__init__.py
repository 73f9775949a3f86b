"""AG-UI: runs for the web pages of others, as the events of its specification 1.0.

`routes` takes requests and imports the rest with the first of them. `request` reads a request, `runs` starts
or resumes its run, and `events` encodes the run's events.
"""
