"""CloudEvents: their structure, media types and extension attributes."""
