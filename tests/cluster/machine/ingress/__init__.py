"""The test cluster's ingress for Knative Serving: KIngress resources become an nginx configuration.

What belongs here: what runs inside the ingress pod (by the standard library alone), its image and its
manifest. HTTP/1 without TLS, for tests; no part of Beckon's installation. The fields are those of the
kind Ingress in `networking.internal.knative.dev/v1alpha1`.
"""
