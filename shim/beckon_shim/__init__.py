"""The shim: a request goes in, an event goes to a Broker, its reply comes back as the response."""
