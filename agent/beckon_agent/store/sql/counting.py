"""The tokens of runs that have not ended: those of the answers they have so far."""

from collections.abc import Sequence

from sqlalchemy import Connection, select

from beckon_agent.model.types import Usage
from beckon_agent.store.sql.tables import turns
from beckon_agent.store.sql.usage import usage_of


def used_so_far(connection: Connection, run_ids: Sequence[str]) -> dict[str, Usage]:
    """Return what each of these runs has used, where somebody counted."""
    if not run_ids:
        return {}
    found: dict[str, Usage] = {}
    statement = select(turns.c.run_id, turns.c.usage).where(turns.c.run_id.in_(run_ids))
    for run_id, document in connection.execute(statement):
        if (usage := usage_of(document)) is not None:
            before = found.get(run_id, Usage(0, 0))
            prompt = before.prompt_tokens + usage.prompt_tokens
            found[run_id] = Usage(prompt, before.completion_tokens + usage.completion_tokens)
    return found
