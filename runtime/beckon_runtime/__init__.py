"""The code common to all services.

Settings, logs, traces and their export, problem documents, limits on connections, the check of Host and
Origin, the HTTP server of shim and broker, and ASGI applications on uvicorn. The work of a single service
does not belong here.
"""
