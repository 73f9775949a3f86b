"""How JSON Schemas are read, rewritten and lowered, for `parameters`, `lowering` and `arguments`."""
