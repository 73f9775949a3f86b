"""The types that every package of the agent shares. Nothing in here does I/O."""
