"""The declaration of a tool: a function, async or plain, with its metadata."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, TypeVar

from beckon_tools.errors import DeclarationError
from beckon_tools.signature import Signature, describe_function, read_result_schema, read_signature

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

_KUBERNETES_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")
_PRINTABLE = re.compile(r"[^\x00-\x20\x7f]+\Z")


@dataclass(frozen=True, slots=True)
class Hints:
    """Hints about a tool for agents, as annotations of its EventType.

    `timeout` in seconds is how long a caller should wait; `None` leaves that to the agent.
    """

    read_only: bool = False
    destructive: bool | None = None
    idempotent: bool = False
    requires_approval: bool = False
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Tool(Generic[P, R_co]):
    """A function as a tool; calling it calls the function.

    `name` is the EventType's metadata.name, `type` the CloudEvents type of a call, `reply_type`
    that of the answer, `source` that of the answer's sender. `returns` is the JSON Schema of results.
    """

    function: Callable[P, R_co]
    name: str
    type: str
    reply_type: str
    source: str
    description: str
    signature: Signature
    hints: Hints = field(default_factory=Hints)
    returns: Mapping[str, Any] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function itself, without event or HTTP."""
        return self.function(*args, **kwargs)

    @property
    def service(self) -> str:
        """The name of the Knative Service: a DNS label, 63 characters at most."""
        return re.sub(r"[^a-z0-9-]", "-", self.name)[:63].strip("-")


AnyTool = Tool[..., object]


def tool(
    *,
    type: str,  # noqa: A002 - the name of the CloudEvents attribute that it sets
    name: str | None = None,
    description: str | None = None,
    reply_type: str | None = None,
    source: str | None = None,
    hints: Hints | None = None,
) -> Callable[[Callable[P, R_co]], Tool[P, R_co]]:
    """Declare a function as the tool for events of `type`.

    A plain function runs in a thread. `name` defaults to the type, `reply_type` to the type with
    ".reply", `source` to /beckon/tools/NAME; `description` to the first paragraph of the docstring and
    the result, as far as docstring and return annotation describe it.

    Raises `DeclarationError` if the function or one of these is not valid.
    """

    def declare_tool(function: Callable[P, R_co]) -> Tool[P, R_co]:
        chosen = name if name is not None else type
        declared = Tool(
            function=function,
            name=chosen,
            type=type,
            reply_type=reply_type if reply_type is not None else f"{type}.reply",
            source=source if source is not None else f"/beckon/tools/{chosen}",
            description=description if description is not None else describe_function(function),
            signature=read_signature(function),
            hints=hints or Hints(),
            returns=read_result_schema(function),
        )
        _check_tool(declared)
        return declared

    return declare_tool


def _check_tool(declared: Tool[P, R_co]) -> None:
    if not _KUBERNETES_NAME.match(declared.name):
        raise DeclarationError(
            f"the name {declared.name!r} is not a Kubernetes name; "
            "use a-z, 0-9, '-' and '.', and a letter or digit at both ends"
        )
    for what, value in (
        ("type", declared.type),
        ("reply_type", declared.reply_type),
        ("source", declared.source),
    ):
        if not _PRINTABLE.match(value):
            raise DeclarationError(f"the {what} {value!r} is empty or has spaces or control characters")
    if declared.reply_type == declared.type:
        raise DeclarationError(
            f"the reply type is the call's type {declared.type!r}: a broker would deliver each reply "
            "as a new call, for ever; give the reply a type of its own"
        )
    if not declared.description:
        raise DeclarationError(
            f"the tool {declared.name!r} has no description, by which a model chooses it; write a docstring"
        )
