"""JSON Schemas of parameters: normal form, lowering for providers, validation of arguments."""
