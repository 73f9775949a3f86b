"""The admission webhook, a process of its own: `python -m beckon_operator.webhook`.

Knative erases `spec.schemaData` right after creation; this copies it into an annotation first. Here
belongs what that takes: the answer to an AdmissionReview (`reviews`), its HTTP (`app`), and the
certificates that the API server trusts (`certificates` < `holdings` < `rotation` < `keeper`).
What an EventType means, and what a good schema is, is the contract's to say.
"""
