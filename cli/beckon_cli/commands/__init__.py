"""The verbs of `beckon`, a module each; what they share stands one floor up."""
