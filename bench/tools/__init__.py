"""How well the tools that a question needs are found among more than a thousand, and how fast."""
