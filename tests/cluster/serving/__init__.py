"""Tools that are Knative Services: asleep, slow, rolled out, broken or missing."""
