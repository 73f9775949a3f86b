"""A database as the store's parts use it: one piece of work is one transaction."""

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
    """Runs work; it sees a connection of SQLAlchemy's plain kind, whatever is behind it.

    Raises `StoreUnavailable` where the database does not answer. An exception of the work itself undoes it.
    """

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run work that changes nothing."""
        ...

    async def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run work whose changes are all stored, or none of them."""
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...


@contextmanager
def plain_errors() -> Iterator[None]:
    """Tell what a driver raises in the store's own words; a broken constraint is for the work to explain."""
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
    """Return what an error says, without what its library adds to that."""
    lines = str(error).splitlines()
    return lines[0][:300] if lines else type(error).__name__
