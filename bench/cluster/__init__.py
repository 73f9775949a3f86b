"""What the benchmarks on a Kubernetes cluster share: finding it, what its pods use, a tool to call."""
