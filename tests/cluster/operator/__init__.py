"""The operator on a real cluster: each condition and reason, and what it survives."""
