"""Tools, and the custom resources Tool and Agent."""
