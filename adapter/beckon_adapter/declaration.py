"""The adapter's tool for an EventType with a rule, and the calls of it."""

import hashlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from cloudevents.core.v1.event import CloudEvent as PublicEvent
from pydantic import BaseModel

from beckon_contract.catalogue.annotations import A2A, HTTP, MCP, BrokenPlace, find_parameters, read_options
from beckon_contract.fields import FieldProblem, InvalidFields
from beckon_contract.jsontext import NotJsonError, loads
from beckon_contract.knative.eventtypes import EventType, InvalidEventType, parse_event_type
from beckon_contract.kubernetes_objects import Key, Resource
from beckon_contract.schema.arguments import Validator
from beckon_contract.schema.parameters import SchemaError, normalise
from beckon_tools.declaration import AnyTool, Tool
from beckon_tools.errors import ToolError
from beckon_tools.outbox import has_sink
from beckon_tools.person import Person
from beckon_tools.progress import Progress
from beckon_tools.signature import InvalidArguments, Signature

Report = Callable[[float, float | None, str], Awaitable[None]]
"""Reports the progress of a call: the done part, the whole, and a text. Raises nothing."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call; `repeatable` is declared by its EventType.

    `report` is `None` if progress cannot be published. `person` is the person behind the call.
    """

    source: str
    id: str
    repeatable: bool
    report: Report | None = None
    person: Person = field(default_factory=Person)

    @property
    def key(self) -> str:
        """A unique key of the call, the same at every delivery."""
        return hashlib.sha256(f"{self.source}\n{self.id}".encode()).hexdigest()[:32]


Run = Callable[[Mapping[str, object], Call], Awaitable[object]]
"""Carries out a call: its arguments in, its result out."""


logger = logging.getLogger(__name__)

RULES = (HTTP, MCP, A2A)

Prepare = Callable[[str, Mapping[str, object]], Run]
"""Reads the text of a rule, for parameters in JSON Schema; raises `InvalidFields`."""

Preparers = Mapping[str, Prepare]
"""What carries out the rules of each annotation."""


@dataclass(frozen=True, slots=True)
class DeclaredSignature(Signature):
    """The parameters of an EventType.

    Without a validator all arguments pass; the tool then reports the mistake in the EventType.
    """

    validator: Validator | None = field(default=None, kw_only=True)

    def read(self, data: bytes | None) -> dict[str, object]:
        """Return the arguments under their one name; raise `InvalidArguments`."""
        try:
            arguments = loads(data or b"{}")
        except NotJsonError as error:
            raise InvalidArguments((f"the arguments are no JSON: {error}",)) from None
        if not isinstance(arguments, dict):
            raise InvalidArguments(("the arguments must be an object",))
        if self.validator is not None and (problems := self.validator.problems(arguments)):
            raise InvalidArguments(problems)
        return {"arguments": arguments}


def has_rule(resource: Resource) -> bool:
    """Return True if the adapter serves an EventType."""
    return not resource.annotations.keys().isdisjoint(RULES)


def declare_tool(resource: Resource, preparers: Preparers) -> AnyTool | None:
    """Return the tool of an EventType with a rule.

    A mistake in the EventType is logged, and is the error of every call. Returns `None` if not even its
    type can be read.
    """
    try:
        event_type = parse_event_type(resource)
    except InvalidEventType as error:
        logger.error("%s is not served: %s", resource.key, error)  # noqa: TRY400 the error says all of it
        return None
    try:
        validator, run = _read_rule(event_type, preparers)
    except (InvalidFields, BrokenPlace, SchemaError) as error:
        logger.error("%s cannot be called: %s", resource.key, error)  # noqa: TRY400 the error says all of it
        return _make_tool(
            event_type, None, _refusing_run(f"the EventType {event_type.name} has a mistake: {error}")
        )
    return _make_tool(event_type, validator, run)


def rule_of(event_type: EventType) -> str:
    """Return the name of the EventType's rule annotation. Raises `InvalidFields` if it has two of them."""
    first, *others = [name for name in RULES if name in event_type.annotations]
    if others:
        raise InvalidFields(
            [FieldProblem(f"metadata.annotations[{others[0]}]", f"contradicts {first}; remove one")]
        )
    return first


def _read_rule(event_type: EventType, preparers: Preparers) -> tuple[Validator, Run]:
    parameters = normalise(find_parameters(event_type).document)
    options = read_options(event_type)
    repeatable = options.idempotent or options.read_only
    annotation = rule_of(event_type)
    run = preparers[annotation](event_type.annotations[annotation], parameters)

    async def run_checked(arguments: Mapping[str, object], call: Call) -> object:
        return await run(arguments, replace(call, repeatable=repeatable))

    return Validator(parameters), run_checked


def _refusing_run(message: str) -> Run:
    async def refuse(arguments: Mapping[str, object], call: Call) -> object:
        raise ToolError(message)

    return refuse


def _make_tool(event_type: EventType, validator: Validator | None, run: Run) -> AnyTool:
    async def call_function(
        arguments: Mapping[str, object], event: PublicEvent, progress: Progress, person: Person
    ) -> object:
        report = progress.report if has_sink() else None
        call = Call(event.get_source(), event.get_id(), repeatable=False, report=report, person=person)
        return await run(arguments, call)

    return Tool(
        function=call_function,
        name=event_type.name,
        type=event_type.type,
        reply_type=f"{event_type.type}.reply",
        source=f"/beckon/adapter/{event_type.namespace}/{event_type.name}",
        description=event_type.description,
        signature=DeclaredSignature(
            BaseModel,
            validator.schema if validator else {},
            event_parameter="event",
            progress_parameter="progress",
            person_parameter="person",
            validator=validator,
        ),
    )


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
        rules = self._by_type.get(type, {})
        if namespace and not self._anywhere:
            return next((tool for key, tool in rules.items() if key.namespace == namespace), None)
        if len({key.namespace for key in rules}) > 1:
            places = ", ".join(sorted(str(key) for key in rules))
            return _with_refusal(
                next(iter(rules.values())),
                f"several EventTypes have the type {type}, and the Broker does not say whose: {places}",
            )
        return next(iter(rules.values()), None)


def _with_refusal(tool: AnyTool, message: str) -> AnyTool:
    async def refuse(**_: object) -> object:
        raise ToolError(message)

    return replace(tool, function=refuse)
