"""What all routes share: limits, streams, errors, and pieces of the OpenAPI description."""
