"""The agent loop: model answers, tool calls, and their results."""
