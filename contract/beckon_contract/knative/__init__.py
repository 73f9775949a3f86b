"""Resources of Knative Eventing: EventTypes, Triggers, delivery, filters, addresses."""
