"""The language of the product's Python: a lint for names, and figures of how far the code is from it."""
