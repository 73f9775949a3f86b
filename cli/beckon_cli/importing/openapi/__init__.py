"""From an API's description (Swagger 2, OpenAPI 3.0 and 3.1) to EventTypes, Triggers and adapter rules.

`references` follows references between the documents; `swagger2` and `openapi3` bring both
dialects into the one model of `operations`. `arguments` makes one flat object of the parts of a request,
`importer` the adapter's rule. Nothing here knows the command line, and nothing in a description is trusted:
what it may make us read, and how large it may grow, is limited where it is read.
"""
