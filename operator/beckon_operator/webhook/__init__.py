"""The admission webhook, a process of its own: `python -m beckon_operator.webhook`.

Knative erases the schemaData of an EventType right after creation; this webhook copies it into an annotation
first. The parts are the answer to an AdmissionReview (`reviews`), its HTTP (`app`), and the certificates that
the API server trusts (`certificates`, `rotation`). The meaning of an EventType and the rules for a good
schema are defined by the contract package.
"""
