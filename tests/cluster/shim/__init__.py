"""The shim in a cluster: replicas behind one Service and one reply Trigger, killed, rolled, cut off.

Each test's stack is made of the shim's own manifests in `deploy/`, in a namespace of the test.
"""
