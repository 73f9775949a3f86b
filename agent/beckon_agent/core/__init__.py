"""Types shared by all packages of the agent, without any I/O."""
