"""The agent loop: the model answers, its tool calls are made, and their results go back to it."""
