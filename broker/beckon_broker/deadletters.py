"""The event that a dead-letter sink receives; pure.

It is the original event with Knative's error attributes (knative/eventing
pkg/kncloudevents/event_dispatcher.go), and with its TTL: a sink that is a Broker again would
otherwise send an undeliverable event round for ever.
"""

import base64

from beckon_broker.answers import Setback
from beckon_broker.envelope import TTL, Envelope
from beckon_contract.events import AttributeValue, CloudEvent

DESTINATION = "knativeerrordest"
CODE = "knativeerrorcode"
DATA = "knativeerrordata"
MAX_DATA_BYTES = 768  # 1024 characters in Base64, Knative's bound


def dead_letter(envelope: Envelope, destination: str, setback: Setback) -> CloudEvent:
    """Return the original event with where it could not go, the status code, and the answer's body.

    The body is cut so that its Base64 has at most 1024 characters; an empty one gives no attribute.
    """
    error: dict[str, AttributeValue] = {
        TTL: envelope.ttl,
        DESTINATION: destination,
        CODE: setback.code,
    }
    if setback.data:
        error[DATA] = base64.b64encode(setback.data[:MAX_DATA_BYTES]).decode()
    return envelope.event.without(DATA).extended(**error)
