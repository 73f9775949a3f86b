"""The EventTypes served by the adapter, by the type of their calls."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace

from beckon_contract.kubernetes_objects import Key, Resource
from beckon_tools.declaration import AnyTool
from beckon_tools.errors import ToolError

logger = logging.getLogger(__name__)

Declare = Callable[[Resource], AnyTool | None]
"""Returns the tool of an EventType, `None` for one that cannot be served."""


class RuleRegistry:
    """The EventTypes and their tools, updated by a source.

    The service looks up tools in it. Only changed EventTypes are read again. With `anywhere`, each
    EventType is valid in every namespace.
    """

    def __init__(
        self, serves: Callable[[Resource], bool], declare: Declare, *, anywhere: bool = False
    ) -> None:
        self._anywhere = anywhere
        self._serves = serves
        self._declare = declare
        self._known: dict[Key, tuple[Resource, AnyTool | None]] = {}
        self._by_type: dict[str, dict[Key, AnyTool]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._known)

    def put(self, resource: Resource) -> None:
        """Store a new or changed EventType."""
        before = self._known.get(resource.key)
        if before is not None and before[0] == resource:
            return
        self.drop(resource.key)
        if not self._serves(resource):
            return
        tool = self._declare(resource)
        self._known[resource.key] = (resource, tool)
        if tool is not None:
            self._by_type[tool.type][resource.key] = tool
            logger.info("serving %s for events of type %s", resource.key, tool.type)

    def drop(self, key: Key) -> None:
        """Remove an EventType; running calls continue."""
        _, tool = self._known.pop(key, (None, None))
        if tool is not None:
            del self._by_type[tool.type][key]

    def replace(self, resources: Iterable[Resource]) -> None:
        """Replace all EventTypes by these."""
        wanted = {resource.key: resource for resource in resources}
        for key in self._known.keys() - wanted.keys():
            self.drop(key)
        for resource in wanted.values():
            self.put(resource)

    def find(self, type: str, namespace: str) -> AnyTool | None:  # noqa: A002 - the attribute's name
        """Return the tool for an event type and a Broker's namespace.

        `namespace` is "" if the Broker does not send it. If several namespaces have the type and none is
        selected, the returned tool fails every call with a message that lists them.
        """
        found = self._by_type.get(type, {})
        if namespace and not self._anywhere:
            return next((tool for key, tool in found.items() if key.namespace == namespace), None)
        if len({key.namespace for key in found}) > 1:
            places = ", ".join(sorted(str(key) for key in found))
            return _with_refusal(
                next(iter(found.values())),
                f"several EventTypes have the type {type}, and the Broker does not say whose: {places}",
            )
        return next(iter(found.values()), None)


def _with_refusal(tool: AnyTool, message: str) -> AnyTool:
    async def refuse(**_: object) -> object:
        raise ToolError(message)

    return replace(tool, function=refuse)
