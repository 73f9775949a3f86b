"""Beckon installed as its users install it: with Helm, and with `kubectl apply -k deploy`.

`test_chart` and `test_lint` need the programs of the cluster and no cluster.
"""
