"""The HTTP serving code common to all services.

It has the settings that all services share, limits on connections, the check of Host and Origin in front of
an application, and uvicorn with these. The work of a single service does not belong here.
"""
