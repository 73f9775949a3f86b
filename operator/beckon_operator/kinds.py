"""The kinds of objects watched by the operator."""

from dataclasses import dataclass

from beckon_contract.knative.eventtypes import GROUP as EVENTING
from beckon_contract.resources import tool_resource
from beckon_operator.judging.namespace_view import SERVING

# v1beta2 is what Knative stores: listing it needs no conversion webhook, and only it and
# v1beta1 have a field for schemaData.
EVENT_TYPE_VERSIONS = ("v1beta2", "v1beta3", "v1beta1")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects in one version of its group."""

    group: str
    version: str
    plural: str
    name: str

    @property
    def api_version(self) -> str:
        """The group and the version, as objects state them."""
        return f"{self.group}/{self.version}"


EVENT_TYPES = Kind(EVENTING, EVENT_TYPE_VERSIONS[0], "eventtypes", "EventType")
TRIGGERS = Kind(EVENTING, "v1", "triggers", "Trigger")
BROKERS = Kind(EVENTING, "v1", "brokers", "Broker")
SERVICES = Kind(SERVING, "v1", "services", "Service")
TOOLS = Kind(tool_resource.GROUP, tool_resource.VERSION, tool_resource.PLURAL, tool_resource.KIND)
