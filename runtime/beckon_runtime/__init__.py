"""What every service needs to serve HTTP, whatever it does.

What belongs here: settings that all services share, limits on connections, the check of Host and Origin
in front of an application, and uvicorn with these. What a service does does not belong here.
"""
