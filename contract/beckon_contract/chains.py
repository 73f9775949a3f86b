"""Extension attributes to limit chains of agents calling each other.

Agents count with them; tools copy `CARRIED` to their replies, for a reply may start an agent again.
"""

DEPTH = "beckondepth"
"""How many agents stand before whoever takes the event."""

BUDGET = "beckonbudget"
"""The tokens that are left for whoever takes the event, and for all that it calls."""

USED = "beckonused"
"""On a reply: the tokens that it cost."""

CARRIED = (DEPTH, BUDGET)
