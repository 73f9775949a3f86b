"""Beckon's container images, built for real by buildah and cached outside the checkout.

What belongs here: the base in place of a registry's Python image, the build of the images of
the `Dockerfile`, their tars, and tests of what is in them and how they run. `python -m tests.cluster.images`
builds and prints the sizes; other tests ask `tests.cluster.images.building.built_images`. What brings them
into a cluster does not belong here.
"""
