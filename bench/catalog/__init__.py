"""From `kubectl apply` to the model's next request, with thousands of EventTypes present."""
