"""The tools of the manifests, and the choice of them that an agent has."""

from collections.abc import Sequence
from types import MappingProxyType

from beckon_agent.catalogue.explained import Explanation
from beckon_agent.catalogue.source import CatalogueSource
from beckon_agent.retrieval.choosing import Among, Chooser, FittingTools
from beckon_agent.retrieval.indexes import Indexes
from beckon_contract.catalogue import Catalogue
from beckon_contract.tool_selectors import ToolSelector


class ChosenTools:
    """The catalogue of one agent: the tools of its namespace that its selector chooses."""

    def __init__(self, source: CatalogueSource, namespace: str, selector: ToolSelector) -> None:
        self._source = source
        self._namespace = namespace
        self._selector = selector
        self._whole = source.current
        self._current = self._choose(self._whole)

    @property
    def current(self) -> Catalogue:
        """The catalogue as it is now, in the order of names."""
        whole = self._source.current
        if whole is not self._whole:
            self._whole, self._current = whole, self._choose(whole)
        return self._current

    def explain(self, namespace: str, event_type: str) -> Explanation | None:
        """Return what is known of an EventType of the agent's namespace."""
        return self._source.explain(namespace, event_type) if namespace == self._namespace else None

    def _choose(self, whole: Catalogue) -> Catalogue:
        here, selector = self._namespace, self._selector
        tools = {
            name: tool
            for name, tool in whole.tools.items()
            if tool.namespace == here and selector.selects(tool)
        }
        # A refused manifest may have no labels that could be read: a selector by labels does not choose it.
        refusals = tuple(
            one for one in whole.refusals if one.namespace == here and selector.matches((one.event_type,), {})
        )
        skipped = tuple(one for one in whole.skipped if one.namespace == here)
        return Catalogue(MappingProxyType(tools), refusals, skipped, whole.table)


class FolderTools:
    """What agents choose among; the service's own agent has the tools of all namespaces."""

    def __init__(self, source: CatalogueSource) -> None:
        self._source = source
        self._indexes = Indexes()

    def own(self, namespace: str) -> CatalogueSource:  # a protocol; all namespaces are meant
        """Return the tools of the service's own agent."""
        return self._source

    def chosen(self, namespace: str, selector: ToolSelector) -> CatalogueSource:
        """Return the tools that an agent of a namespace has."""
        return ChosenTools(self._source, namespace, selector)

    def chooser(self, namespace: str, pinned: Sequence[str]) -> Chooser:  # as above
        """Return what chooses for an agent; all of them share one index."""
        return Among(FittingTools(pinned, self._indexes), lambda: self._source.current.tools)
