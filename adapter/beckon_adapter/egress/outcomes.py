"""The outcomes of calls whose request to a host fails."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from beckon_adapter.declaration import Call
from beckon_adapter.egress.client import TooLarge, Unreachable
from beckon_adapter.egress.hosts import NoCredential
from beckon_contract.catalogue.annotations import LOCAL_COMMAND, LOCAL_URL
from beckon_runtime.egress import NotAllowed, WithoutAddress
from beckon_tools.errors import OutcomeUnknown, Retry, ToolError

logger = logging.getLogger(__name__)


@contextmanager
def convert_failures(host: str, call: Call, *, repeatable: bool) -> Iterator[None]:
    """Convert the errors of outgoing requests in the block to those of a tool.

    A lost request is `Retry` if it is `repeatable` or was not sent, else `OutcomeUnknown`. A call to a
    Service without an address is `Retry`, too. The others are `ToolError`. `host` is how the messages name
    the place.
    """
    try:
        yield
    except WithoutAddress as error:
        cure = f"if it does not start, annotate it with {LOCAL_COMMAND} or {LOCAL_URL}"
        raise Retry(f"{error}; {cure}") from None
    except (NotAllowed, NoCredential) as error:
        logger.warning("event %s was not sent: %s", call.id, error)
        raise ToolError(str(error)) from None
    except TooLarge as error:
        raise ToolError(f"{host} {error}") from None
    except Unreachable as error:
        if repeatable or not error.sent:
            raise Retry(f"{host} {error}") from None
        raise OutcomeUnknown(
            f"{host} {error}; the call may have had its effect, and was not repeated"
        ) from None
