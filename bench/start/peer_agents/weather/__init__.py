"""The agent that the peer serves: one tool, as the guide of ADK shows it."""
