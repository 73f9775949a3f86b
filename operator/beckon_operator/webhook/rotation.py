"""The next step in the life of the certificates.

It depends on the present certificates, the trust and the time.

An authority changes in four steps, so that at every moment each certificate that any replica
serves is signed by one that the API server trusts:

1. ADD: the next authority goes into the Secret, and with it into the bundle of trust;
2. SWITCH, once the bundle has held it long enough for every API server to know: it signs a new
   certificate for the server, and the authority before it retires;
3. the replicas load the new certificate, each in its own time;
4. RETIRE, once the last certificate of the retired authority has ended: it leaves the bundle.

If the authority ends between steps 1 and 2, SWITCH comes at once. The API server may trust the next
authority already; it cannot yet trust one that is made only then.
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
from beckon_operator.webhook.holdings import CertificateSet, Retired


class RotationStep(StrEnum):
    """One change of the authorities and the server's certificate."""

    NOTHING = "nothing"
    CREATE = "create"  # everything anew
    RENEW = "renew"  # another certificate for the server, from the same authority
    ADD = "add"
    SWITCH = "switch"
    RETIRE = "retire"


@dataclass(frozen=True, slots=True)
class RotationPolicy:
    """The names and lifetimes of the certificates.

    `settle` is how long the bundle must have held an authority before it signs.
    """

    names: frozenset[str]
    serving_lifetime: timedelta
    authority_lifetime: timedelta
    settle: timedelta


def decide_step(
    holdings: CertificateSet | None,
    policy: RotationPolicy,
    now: datetime,
    upcoming_trusted_since: datetime | None,
) -> RotationStep:
    """Return the one step to take now; `holdings` may be `None`.

    `None` means that the Secret holds nothing usable.
    """
    if holdings is None:
        return RotationStep.CREATE
    has_upcoming = holdings.upcoming is not None and is_valid(holdings.upcoming.certificate, now)
    if not is_valid(holdings.authority.certificate, now):
        return RotationStep.SWITCH if has_upcoming else RotationStep.CREATE
    serving = holdings.serving.certificate
    if not is_valid(serving, now) or is_due(serving, now) or not policy.names <= names_of(serving):
        return RotationStep.RENEW
    if has_upcoming:
        settled = upcoming_trusted_since is not None and now - upcoming_trusted_since >= policy.settle
        return RotationStep.SWITCH if settled else RotationStep.NOTHING
    if holdings.retired is not None:
        ended = now >= holdings.retired.last_signed.not_valid_after_utc
        return RotationStep.RETIRE if ended else RotationStep.NOTHING
    return RotationStep.ADD if is_due(holdings.authority.certificate, now) else RotationStep.NOTHING


def take_step(
    step: RotationStep, holdings: CertificateSet | None, policy: RotationPolicy, now: datetime
) -> CertificateSet:
    """Return the holdings after a step."""
    if holdings is None or step is RotationStep.CREATE:
        authority = new_authority(policy.authority_lifetime, now)
        return CertificateSet(authority, new_serving(authority, policy.names, policy.serving_lifetime, now))
    if step is RotationStep.RENEW:
        names, present = policy.names, names_of(holdings.serving.certificate)
        if not names <= present:
            names |= present  # replicas of two releases, each of which must find its own
        serving = new_serving(holdings.authority, names, policy.serving_lifetime, now)
        return replace(holdings, serving=serving)
    if step is RotationStep.ADD:
        return replace(holdings, upcoming=new_authority(policy.authority_lifetime, now))
    if step is RotationStep.SWITCH and holdings.upcoming is not None:
        retired = Retired(holdings.authority.certificate, holdings.serving.certificate)
        serving = new_serving(holdings.upcoming, policy.names, policy.serving_lifetime, now)
        return CertificateSet(holdings.upcoming, serving, retired=retired)
    if step is RotationStep.RETIRE:
        return replace(holdings, retired=None)
    return holdings
