"""The terms of use of an Agent: access, policies and quotas."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from beckon_contract.fields import Fields
from beckon_contract.resources.tools import TextCallRule, ToolSelector, read_tool_selector

Approval = Literal["Always", "Writes"]
"""`Writes` are calls of tools that do not say that they only read."""

Measure = Literal["requests", "tokens", "toolCalls"]
Holder = Literal["user", "agent"]

EVERYBODY = "*"
KEY_PREFIX = "key:"
OIDC_PREFIX = "oidc:"

_ACCESS = ("users", "groups", "toolRules", "eventRules")
_RULE = ("users", "groups", "tools")
_EVENT_RULE = ("users", "groups", "types")
_POLICY = ("tools", "approval", "fromText", "readOnly", "dispatch", "timeoutSeconds", "concurrency", "rate")
_RATE = ("calls", "seconds")
_QUOTA = ("of", "per", "limit", "seconds")


@dataclass(frozen=True, slots=True)
class Callers:
    """The callers named by a rule: principals and groups.

    Principals are named by their ids; a group includes everybody in it.
    """

    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def include(self, user: str, groups: Collection[str]) -> bool:
        """Return True if a principal is named by id or group."""
        return EVERYBODY in self.users or user in self.users or not self.groups.isdisjoint(groups)


@dataclass(frozen=True, slots=True)
class ToolRule:
    """A rule for the tools available to some callers."""

    callers: Callers
    tools: ToolSelector


@dataclass(frozen=True, slots=True)
class EventRule:
    """A rule for the events that some callers may read.

    `types` are CloudEvents types. One that ends with `*` includes every type with this beginning.
    """

    callers: Callers
    types: tuple[str, ...]

    def includes(self, event_type: str) -> bool:
        """Return True if the rule names a type."""
        return any(
            event_type.startswith(pattern[:-1]) if pattern.endswith(EVERYBODY) else event_type == pattern
            for pattern in self.types
        )


@dataclass(frozen=True, slots=True)
class Access:
    """The permitted callers of an agent, their tools and their events.

    `callers` is `None` for the rule of the service, `tool_rules` is `None` for all tools. `event_rules` is
    `None` for all events, or for none if there are rules for tools.

    With rules, a caller has the tools and events of the rules that name the caller, and no others.
    """

    callers: Callers | None = None
    tool_rules: tuple[ToolRule, ...] | None = None
    event_rules: tuple[EventRule, ...] | None = None


ANY_ACCESS = Access()


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `calls` calls in any `seconds` seconds."""

    calls: int
    seconds: int


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """Restrictions on the calls of some tools.

    They apply to each of these tools; of several policies the strictest counts.

    With `read_only`, only tools declared as read-only are offered. With `through_broker`, only tools are
    offered whose calls are events of the Broker, which others can see, repeat and route. `text_calls` is
    the treatment of calls that were read from the model's text. `concurrency` and `rate` hold over all
    users and all replicas; `timeout` is in seconds.
    """

    tools: ToolSelector
    approval: Approval | None = None
    text_calls: TextCallRule = "Allow"
    read_only: bool = False
    through_broker: bool = False
    timeout: int | None = None
    concurrency: int | None = None
    rate: Rate | None = None


@dataclass(frozen=True, slots=True)
class Quota:
    """A limit on usage in any `seconds` seconds. It applies to each user, or to the agent as a whole."""

    of: Measure
    per: Holder
    limit: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one Agent: access, policies and quotas."""

    access: Access = ANY_ACCESS
    policies: tuple[ToolPolicy, ...] = ()
    quotas: tuple[Quota, ...] = ()


NO_TERMS = Terms()
"""Every caller with access may use the agent as it is."""


def read_terms(spec: Fields) -> Terms:
    """Read the fields `access`, `toolPolicies` and `quotas`; mistakes are noted with their paths."""
    return Terms(
        access=_access(spec.child("access")),
        policies=tuple(map(_policy, spec.children("toolPolicies"))),
        quotas=tuple(map(_quota, spec.children("quotas"))),
    )


def _access(fields: Fields | None) -> Access:
    if fields is None:
        return Access()
    fields.refuse_unknown(_ACCESS)
    callers = _callers(fields)
    tools = tuple(map(_rule, fields.children("toolRules")))
    events = tuple(map(_event_rule, fields.children("eventRules")))
    with_tools, with_events = (fields.values.get(name) is not None for name in ("toolRules", "eventRules"))
    if callers is None and not with_tools and not with_events:
        # An API server drops fields that it does not know: a misspelt one must not open the agent.
        fields.problem("", "needs users, groups, toolRules or eventRules")
    return Access(callers, tools if with_tools else None, events if with_events else None)


def _callers(fields: Fields) -> Callers | None:
    """Return the callers named by a rule, or `None`.

    Empty lists name no callers. `None` means that neither `users` nor `groups` is written, so that the rule
    says nothing of callers.
    """
    if fields.values.get("users") is None and fields.values.get("groups") is None:
        return None
    users, groups = fields.strings("users"), fields.strings("groups")
    for user in users:
        if user != EVERYBODY and not _is_id(user):
            fields.problem(
                "users",
                f"{user[:80]!r} is no user; write {KEY_PREFIX}NAME of an API key, {OIDC_PREFIX}SUBJECT, "
                f'or "{EVERYBODY}" for everybody',
            )
    if "" in groups:
        fields.problem("groups", "a group is empty; write its name, or remove it")
    return Callers(frozenset(users), frozenset(groups))


def _is_id(user: str) -> bool:
    return any(user.startswith(prefix) and user != prefix for prefix in (KEY_PREFIX, OIDC_PREFIX))


def _rule(fields: Fields) -> ToolRule:
    fields.refuse_unknown(_RULE)
    callers = _callers_of_rule(fields)
    if fields.values.get("tools") is None:
        fields.problem("tools", "missing; write names or a selector, or an empty mapping for all")
    return ToolRule(callers, read_tool_selector(fields.child("tools")))


def _event_rule(fields: Fields) -> EventRule:
    fields.refuse_unknown(_EVENT_RULE)
    callers, types = _callers_of_rule(fields), fields.strings("types")
    if fields.values.get("types") is None:
        fields.problem("types", f'missing; write CloudEvents types, or ["{EVERYBODY}"] for all')
    for one in types:
        if not one or EVERYBODY in one[:-1]:
            fields.problem("types", f"{one[:80]!r} is no type; write {EVERYBODY} only at the end")
    return EventRule(callers, tuple(types))


def _callers_of_rule(fields: Fields) -> Callers:
    callers = _callers(fields)
    if callers is None:
        fields.problem("", f'needs users or groups; write users: ["{EVERYBODY}"] for everybody')
    return callers or Callers()


def _policy(fields: Fields) -> ToolPolicy:
    fields.refuse_unknown(_POLICY)
    if not set(fields.values) - {"tools"}:
        fields.problem("", f"needs {', '.join(_POLICY[1:-1])} or {_POLICY[-1]}")
    return ToolPolicy(
        tools=read_tool_selector(fields.child("tools")),
        approval=_approval(fields),
        text_calls=_text_calls(fields),
        read_only=fields.boolean("readOnly") or False,
        through_broker=_through_broker(fields),
        timeout=fields.positive("timeoutSeconds"),
        concurrency=fields.positive("concurrency"),
        rate=_rate(fields.child("rate")),
    )


def _approval(fields: Fields) -> Approval | None:
    match fields.text("approval"):
        case None:
            return None
        case "Always" | "Writes" as known:
            return known
    fields.problem("approval", "must be Always or Writes")
    return None


def _text_calls(fields: Fields) -> TextCallRule:
    match fields.text("fromText"):
        case None:
            return "Allow"
        case "Allow" | "Approve" | "Refuse" as known:
            return known
    fields.problem("fromText", "must be Allow, Approve or Refuse")
    return "Refuse"


def _through_broker(fields: Fields) -> bool:
    dispatch = fields.text("dispatch")
    if dispatch not in {None, "broker"}:
        fields.problem("dispatch", "must be broker; a tool is called directly where its EventType says so")
    return dispatch is not None


def _rate(fields: Fields | None) -> Rate | None:
    if fields is None:
        return None
    fields.refuse_unknown(_RATE)
    return Rate(_needed(fields, "calls"), _needed(fields, "seconds"))


def _quota(fields: Fields) -> Quota:
    fields.refuse_unknown(_QUOTA)
    of, per = fields.text("of"), fields.text("per")
    if of not in {"requests", "tokens", "toolCalls"}:
        fields.problem("of", "must be requests, tokens or toolCalls")
    if per not in {"user", "agent"}:
        fields.problem("per", "must be user or agent")
    return Quota(_measure(of), _holder(per), _needed(fields, "limit"), _needed(fields, "seconds"))


def _measure(text: str | None) -> Measure:
    match text:
        case "tokens" | "toolCalls":
            return text
        case _:
            return "requests"


def _holder(text: str | None) -> Holder:
    return "agent" if text == "agent" else "user"


def _needed(fields: Fields, name: str) -> int:
    if fields.values.get(name) is None:
        fields.problem(name, "missing; write a whole number")
    return fields.positive(name) or 1
