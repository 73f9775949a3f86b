"""Beckon installed as its users install it: with Helm, and with `kubectl apply -k deploy`."""
