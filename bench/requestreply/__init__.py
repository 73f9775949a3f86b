"""Beckon's shim beside Knative's own RequestReply: same calls, same tool, same Broker, one run."""
