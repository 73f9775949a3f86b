"""What the shim costs, beside a bare-ASGI echo of the same messages in the same run."""
