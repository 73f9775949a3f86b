"""The schema for answers of text dialects: what a model server shows of it.

Servers constrain answers by `response_format`, refuse it, fail at it, or ignore it without an error. Which of
these holds is learned from the first answers, and an answer without the schema takes the place of a bad one.
"""

import logging
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from beckon_agent.core.model_types import Turn
from beckon_agent.core.run_events import StreamItem
from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import (
    ContentNotSupported,
    ContextTooLong,
    FieldNotSupported,
    ModelRefused,
    ModelUnavailable,
    SchemaRejected,
)
from beckon_agent.run.answer_reading import AnswerReading

logger = logging.getLogger(__name__)

_NAMED = re.compile(r"response[_ ](format|schema)|json[_ ]schema|structured[_ ]output|grammar", re.IGNORECASE)
_OTHER_CAUSES = (ContentNotSupported, ContextTooLong, FieldNotSupported)
_CRASHED = 500


class Outdated(Exception):
    """The request was made before the server was known better; nothing of its answer was shown."""


class AnswerConstraint:
    """The use of a schema for answers at one model server."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self._suspected = False

    @property
    def may_be_sent(self) -> bool:
        """True unless the server is known not to constrain answers."""
        profile = self._client.profile
        return profile.answer_schema is not False and "response_format" not in profile.refuses

    async def watch_answer(
        self, items: AsyncGenerator[StreamItem], reading: AnswerReading
    ) -> AsyncGenerator[StreamItem]:
        """Yield the pieces of an answer with a schema, and learn from them.

        Raises `Outdated` for an answer that does not keep to the schema, if nothing of it is shown and it has
        no call.
        """
        usable = False
        async with aclosing(items):
            async for item in items:
                keeps = reading.keeps_format
                if isinstance(item, Turn):
                    usable = usable or bool(item.calls)
                    if keeps is None and not usable and item.finish_reason in (None, "stop"):
                        keeps = False  # an empty answer
                if keeps is not None:
                    self._learn(keeps)
                if keeps is False and not usable:
                    raise Outdated
                usable = True
                yield item

    def is_cause(self, error: ModelRefused | ModelUnavailable) -> bool:
        """True if the server may have failed at the schema, which is then left out.

        If the server is unknown, that is every error without another cause: some servers give no reason.
        """
        named = isinstance(error, SchemaRejected) or _NAMED.search(error.message) is not None
        if not named and (self._client.profile.answer_schema is not None or not _is_unexplained(error)):
            return False
        self._suspected = not named
        logger.warning("the model server takes no schema for answers (%s); from now on without it", error)
        self._set(False)
        return True

    def note_error(self) -> None:
        """Take note of an error without the schema: it was not the cause of the error before."""
        if self._suspected:
            self._suspected = False
            self._set(None)

    def note_answer(self) -> None:
        """Take note of an answer: what was suspected is true."""
        self._suspected = False

    def _learn(self, constrains: bool) -> None:
        if self._client.profile.answer_schema is constrains:
            return
        if not constrains:
            logger.warning("the model server ignores the schema for answers; from now on without it")
        self._set(constrains)

    def _set(self, constrains: bool | None) -> None:
        self._client.profile = replace(self._client.profile, answer_schema=constrains)


def _is_unexplained(error: ModelRefused | ModelUnavailable) -> bool:
    if isinstance(error, ModelUnavailable):
        return error.status == _CRASHED
    return not isinstance(error, _OTHER_CAUSES)
