"""Push notifications: a task is posted to its client's address when it ends or needs a person.

The targets are in the store, and any replica notifies any of them. A replica claims a target for a time; if
it is killed meanwhile, another one goes on. So a client is notified at least once of each such state that
lasts. Requests go to the hosts that a setting allows, and to no private address unless it says so.
"""

from __future__ import annotations

import functools
import ipaddress
import logging
import random
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import SplitResult, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from beckon_agent.core.records import FINAL, StoredCall, StoredRun
from beckon_agent.durable.due_work import CLAIM_SECONDS, CLAIMED, REQUEST_SECONDS, handle_due
from beckon_agent.store.base import Store
from beckon_agent.store.outgoing import DueTarget
from beckon_runtime.egress import AllowedHost, AllowedHosts, NotAllowed

logger = logging.getLogger(__name__)

HOSTS_SETTING = "BECKON_PUSH_HOSTS"
TOKEN_HEADER = "x-a2a-notification-token"  # noqa: S105  # the header's name; A2A 1.0, section 4.3.3
_LONGEST_URL = 2_000  # characters
_LOOK_SECONDS = 0.3
_TRIES = 10  # the last one a quarter of an hour after the first
_LONGEST_PAUSE = 300.0  # seconds

WriteTask = Callable[[Store, StoredRun], Awaitable[Mapping[str, Any]]]
"""Returns the notification of a run: a `StreamResponse` of A2A, as JSON."""


class InvalidTarget(ValueError):
    """An address at which no client can be notified; the message has the cure."""


def allow_push(entries: Sequence[AllowedHost]) -> AllowedHosts:
    """Return the hosts at which clients may be notified."""
    return AllowedHosts(entries, "the agent", HOSTS_SETTING)


def check_target(url: str, allowed: AllowedHosts) -> None:
    """Raise `InvalidTarget` for an address that is not allowed. Its name is resolved with each request."""
    try:
        parts = _split_url(url)
        entry = allowed.find(parts.scheme, parts.hostname or "", parts.port)
        _check_literal(parts.hostname or "", entry, allowed)
    except (ValueError, NotAllowed) as error:
        raise InvalidTarget(f"url: {error}") from None


def _split_url(url: str) -> SplitResult:
    if len(url) > _LONGEST_URL:
        raise ValueError(f"at most {_LONGEST_URL} characters")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("write an address such as https://client.example.com/tasks")
    if parts.username is not None or parts.password is not None:
        raise ValueError("write the credentials as 'authentication', not into the address")
    return parts


def _check_literal(host: str, entry: AllowedHost, allowed: AllowedHosts) -> None:
    """Check a host that is an address, and is not resolved therefore."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return
    allowed.check_addresses(host, entry, [host])


class CheckedResolver(AbstractResolver):
    """Resolves allowed hosts; any other one, and a forbidden address, is `NotAllowed`."""

    def __init__(self, allowed: AllowedHosts) -> None:
        self._allowed = allowed
        self._system = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host."""
        entry = next(self._allowed.reached_at(host, port), None)
        if entry is None:
            raise NotAllowed(f"the agent may not call {host}:{port} ({HOSTS_SETTING})")
        if entry.place is not None:
            return [_to_result(host, *entry.place)]
        addresses = await self._system.resolve(host, port, family)
        self._allowed.check_addresses(host, entry, [one["host"] for one in addresses])
        return addresses

    async def close(self) -> None:
        """Release the resolver."""
        await self._system.close()


def _to_result(host: str, address: str, port: int) -> ResolveResult:
    """Return the result for a host with a known address."""
    return {
        "hostname": host,
        "host": address,
        "port": port,
        "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
        "proto": 0,
        "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    }


@asynccontextmanager
async def push_session(allowed: AllowedHosts) -> AsyncIterator[aiohttp.ClientSession]:
    """Open the session for requests to allowed hosts, without proxies and cookies."""
    connector = aiohttp.TCPConnector(resolver=CheckedResolver(allowed), use_dns_cache=False, limit=CLAIMED)
    timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
    ) as session:
        yield session


def notable_state(run: StoredRun, calls: Sequence[StoredCall]) -> str:
    """Return the state of a run that its client is notified of; empty if it works.

    Two states are the same if they are equal: a run that waits for another decision has another state.
    """
    if run.status in FINAL:
        return run.status
    waiting = sorted(call.event_id for call in calls if call.needs_person)
    return f"input: {','.join(waiting)}" if waiting else ""


@dataclass(frozen=True, slots=True)
class PushSender:
    """Notifies the clients of all runs. `session` is a `push_session` of the same hosts."""

    store: Store
    session: aiohttp.ClientSession
    allowed: AllowedHosts
    write_task: WriteTask

    async def send_until_cancelled(self) -> None:
        """Notify until cancelled."""
        claim = functools.partial(self.store.push.claim_due, most=CLAIMED, seconds=CLAIM_SECONDS)
        await handle_due(claim, self._look_at, look_seconds=_LOOK_SECONDS, what="the push notification")

    async def _look_at(self, due: DueTarget) -> None:
        """Notify a client if its run has a new state to report, and store when to look again."""
        run = await self.store.runs.get(due.run_id)
        if run is None:
            return
        state = notable_state(run, (await self.store.runs.load_past(run.id)).calls)
        look_again = None if run.status in FINAL else _pause_of(run)
        if state in ("", due.notified):
            await self.store.push.note_sent(due, seconds=look_again)
            return
        problem = await self._post(due, run)
        if problem is None:
            await self.store.push.note_sent(replace(due, notified=state, failures=0), seconds=look_again)
            return
        failures = due.failures + 1
        logger.warning(
            "the client of task %s is not notified at %s (%d of %d): %s",
            run.id,
            urlsplit(due.target.url).hostname,
            failures,
            _TRIES,
            problem,
        )
        if failures == _TRIES:
            await self.store.push.note_sent(replace(due, notified=state, failures=0), seconds=look_again)
            return
        pause = min(2.0**failures, _LONGEST_PAUSE) * random.uniform(0.8, 1.2)  # noqa: S311  # jitter is no secret
        await self.store.push.note_sent(replace(due, failures=failures), seconds=pause)

    async def _post(self, due: DueTarget, run: StoredRun) -> str | None:
        """Post a notification; return the problem, `None` for none."""
        target = due.target
        headers = {TOKEN_HEADER: target.token} if target.token else {}
        if target.scheme and target.credentials:
            headers["authorization"] = f"{target.scheme} {target.credentials}"
        try:
            check_target(target.url, self.allowed)  # the setting may have changed since
            body = await self.write_task(self.store, run)
            async with self.session.post(
                target.url, json=body, headers=headers, allow_redirects=False
            ) as answer:
                return None if answer.ok and answer.status < 300 else f"it answers {answer.status}"
        except (InvalidTarget, NotAllowed, TimeoutError, aiohttp.ClientError, ValueError) as error:
            return str(error) or type(error).__name__


def _pause_of(run: StoredRun) -> float:
    """Return the seconds until a working run is looked at again: a tenth of its age, 0.3 to 10."""
    return min(10.0, max(0.3, (time.time() - run.created_at) / 10))
