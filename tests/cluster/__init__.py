"""Tests that need a real Kubernetes with Knative, and the machinery that gives them one."""
