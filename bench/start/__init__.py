"""What it costs to start each program, beside an empty one in the same run."""
