"""The interface of a database: one piece of work is one transaction."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from beckon_agent.store.base import StoreUnavailable

Result = TypeVar("Result")

ADDRESSES = "sqlite:///FILE, sqlite:// for memory, or postgresql://USER:PASSWORD@HOST/DATABASE"
"""How databases are named."""


class Database(Protocol):
    """Runs work with a plain, synchronous SQLAlchemy connection.

    Raises `StoreUnavailable` if the database does not answer. An exception of the work itself undoes its
    changes.
    """

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run work without changes."""
        ...

    async def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run work in a transaction: all its changes are stored, or none."""
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...


@contextmanager
def plain_errors() -> Iterator[None]:
    """Translate a driver's exceptions into those of the store.

    An `IntegrityError` passes through: the work itself explains a broken constraint.
    """
    try:
        yield
    except IntegrityError:
        raise
    except DataError:
        # The driver's message would show the value.
        raise ValueError("a value does not fit its column in the store") from None
    except DBAPIError as error:
        raise StoreUnavailable(f"the database failed: {first_line(error.orig or error)}") from error
    except StatementError as error:
        if isinstance(error.orig, ValueError):  # of `columns`: the value, and not the database
            raise error.orig from None
        raise
    except (OSError, PoolTimeout, sqlite3.Error) as error:
        raise StoreUnavailable(f"the database does not answer: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, at most 300 characters.

    It leaves out the lines that libraries add. An empty message gives the name of the class.
    """
    lines = str(error).splitlines()
    return lines[0][:300] if lines else type(error).__name__
