"""Agents with far more tools than a request may have."""
