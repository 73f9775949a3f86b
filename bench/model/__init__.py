"""A small real language model: the share of right calls, by the agent and by the model alone."""
