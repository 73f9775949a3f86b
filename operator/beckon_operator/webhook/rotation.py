"""The next step in the life of the certificates.

It depends on the present certificates, the trust and the time.

An authority changes in four steps, so that at every moment each certificate that any replica
serves is signed by one that the API server trusts:

1. ADD: the next authority goes into the Secret, and with it into the bundle of trust;
2. SWITCH, once the bundle has held it long enough for every API server to know: it signs a new
   certificate for the server, and the authority before it retires;
3. the replicas load the new certificate, each in its own time;
4. RETIRE, once the last certificate of the retired authority has ended: it leaves the bundle.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from beckon_operator.webhook.certificates import (
    is_due,
    is_valid,
    names_of,
    new_authority,
    new_serving,
)
from beckon_operator.webhook.holdings import Holdings, Retired


class Step(StrEnum):
    """One change of the authorities and the server's certificate."""

    NOTHING = "nothing"
    CREATE = "create"  # everything anew
    RENEW = "renew"  # another certificate for the server, from the same authority
    ADD = "add"
    SWITCH = "switch"
    RETIRE = "retire"


@dataclass(frozen=True, slots=True)
class Policy:
    """The names and lifetimes of the certificates.

    `settle` is how long the bundle must have held an authority before it signs.
    """

    names: frozenset[str]
    serving_lifetime: timedelta
    authority_lifetime: timedelta
    settle: timedelta


def decide(
    holdings: Holdings | None, policy: Policy, now: datetime, upcoming_trusted_since: datetime | None
) -> Step:
    """Return the one step to take now; `holdings` may be `None`.

    `None` means that the Secret holds nothing usable.
    """
    if holdings is None or not is_valid(holdings.authority.certificate, now):
        return Step.CREATE
    serving = holdings.serving.certificate
    if not is_valid(serving, now) or is_due(serving, now) or not policy.names <= names_of(serving):
        return Step.RENEW
    if holdings.upcoming is not None and is_valid(holdings.upcoming.certificate, now):
        settled = upcoming_trusted_since is not None and now - upcoming_trusted_since >= policy.settle
        return Step.SWITCH if settled else Step.NOTHING
    if holdings.retired is not None:
        ended = now >= holdings.retired.last_signed.not_valid_after_utc
        return Step.RETIRE if ended else Step.NOTHING
    return Step.ADD if is_due(holdings.authority.certificate, now) else Step.NOTHING


def take(step: Step, holdings: Holdings | None, policy: Policy, now: datetime) -> Holdings:
    """Return the holdings after a step."""
    if holdings is None or step is Step.CREATE:
        authority = new_authority(policy.authority_lifetime, now)
        return Holdings(authority, new_serving(authority, policy.names, policy.serving_lifetime, now))
    if step is Step.RENEW:
        names, present = policy.names, names_of(holdings.serving.certificate)
        if not names <= present:
            names |= present  # replicas of two releases, each of which must find its own
        serving = new_serving(holdings.authority, names, policy.serving_lifetime, now)
        return replace(holdings, serving=serving)
    if step is Step.ADD:
        return replace(holdings, upcoming=new_authority(policy.authority_lifetime, now))
    if step is Step.SWITCH and holdings.upcoming is not None:
        retired = Retired(holdings.authority.certificate, holdings.serving.certificate)
        serving = new_serving(holdings.upcoming, policy.names, policy.serving_lifetime, now)
        return Holdings(holdings.upcoming, serving, retired=retired)
    if step is Step.RETIRE:
        return replace(holdings, retired=None)
    return holdings
