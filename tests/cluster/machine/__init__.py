"""A real single-node Kubernetes with Knative Eventing and Serving on a Debian machine without Docker.

What belongs here: building the programs with the ordinary `go` command, starting them as plain
processes, and removing every trace of them. `python -m tests.cluster.machine` is the way in, and
`make cluster` calls it. What the tests install into the cluster does not belong here, nor does any
knowledge of Beckon.
"""
