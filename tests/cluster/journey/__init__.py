"""Beckon as it is installed, from `kubectl apply` to the answer of a chat, through the real Broker."""
