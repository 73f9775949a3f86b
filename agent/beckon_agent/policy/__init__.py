"""How carefully and how much: what policies make of tools, and limits that all replicas share."""
