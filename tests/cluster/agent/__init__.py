"""The agent service against a real API server: Tools and Agents as kubectl writes them."""
