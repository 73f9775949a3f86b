"""Services that were not written for Beckon, each with the real SDK of its language, as tools."""
