"""How values are written: text that every database takes, and documents as JSON text.

PostgreSQL's text takes neither NUL nor a lone surrogate, and its `jsonb` neither, nor does it keep every
number as it was written. So documents are ASCII JSON in a text column, and the rare string that would be
refused is escaped.
"""

import json
import re
from typing import Any

from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator

_REFUSED = re.compile(r"[\\\x00\ud800-\udfff]")


class Word(TypeDecorator[str]):
    """Any string of Python; two different ones stay different."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Escape a string that has a backslash or a character that a database would refuse."""
        if value is None or not _REFUSED.search(value):
            return value
        return value.encode("unicode_escape").decode("ascii")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the string as it was: a backslash is only in those that were escaped."""
        if value is None or "\\" not in value:
            return value
        return value.encode("ascii").decode("unicode_escape")


class Document(TypeDecorator[Any]):
    """A JSON value with every number as it was, however large; `None` is NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str | None:
        """Write JSON. Raises `ValueError` for what is none, or nested deeper than can be written."""
        if value is None:
            return None
        try:
            return json.dumps(value, separators=(",", ":"))
        except RecursionError:
            raise ValueError("a value is nested too deeply to be stored") from None
        except TypeError as error:
            raise ValueError(f"a value that is no JSON cannot be stored: {error}") from None

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Read what was written."""
        return None if value is None else json.loads(value)
