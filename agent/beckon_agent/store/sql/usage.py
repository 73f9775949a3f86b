"""Counted tokens as a document."""

from collections.abc import Mapping

from beckon_agent.model.types import Usage


def usage_of(document: Mapping[str, int] | None) -> Usage | None:
    """Return what `dataclasses.asdict` wrote."""
    return None if document is None else Usage(**document)
