"""Rotation of the certificates: the next step, and the rounds that take it."""

import asyncio
import logging
import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import stamina

from beckon_operator.webhook.certificates import (
    CertificatePair,
    CertificateSet,
    RetiredAuthority,
    UnusableCertificates,
    is_due,
    is_valid,
    names_of,
    new_authority,
    new_serving,
    read_certificate_set,
)
from beckon_operator.webhook.cluster import StoredSecret, Trust, WebhookCluster, WriteConflict
from beckon_operator.webhook.metrics import WebhookMetrics
from beckon_runtime.certificates import server_context
from beckon_sources.api_types import ApiError, is_temporary


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
    held: CertificateSet | None,
    policy: RotationPolicy,
    now: datetime,
    upcoming_trusted_since: datetime | None,
) -> RotationStep:
    """Return the one step to take now; `held` may be `None`.

    `None` means that the Secret holds nothing usable.
    """
    if held is None:
        return RotationStep.CREATE
    has_upcoming = held.upcoming is not None and is_valid(held.upcoming.certificate, now)
    if not is_valid(held.authority.certificate, now):
        return RotationStep.SWITCH if has_upcoming else RotationStep.CREATE
    serving = held.serving.certificate
    if not is_valid(serving, now) or is_due(serving, now) or not policy.names <= names_of(serving):
        return RotationStep.RENEW
    if has_upcoming:
        settled = upcoming_trusted_since is not None and now - upcoming_trusted_since >= policy.settle
        return RotationStep.SWITCH if settled else RotationStep.NOTHING
    if held.retired is not None:
        ended = now >= held.retired.last_signed.not_valid_after_utc
        return RotationStep.RETIRE if ended else RotationStep.NOTHING
    return RotationStep.ADD if is_due(held.authority.certificate, now) else RotationStep.NOTHING


def take_step(
    step: RotationStep, held: CertificateSet | None, policy: RotationPolicy, now: datetime
) -> CertificateSet:
    """Return the held after a step."""
    if held is None or step is RotationStep.CREATE:
        authority = new_authority(policy.authority_lifetime, now)
        return CertificateSet(authority, new_serving(authority, policy.names, policy.serving_lifetime, now))
    if step is RotationStep.RENEW:
        names, present = policy.names, names_of(held.serving.certificate)
        if not names <= present:
            names |= present  # replicas of two releases, each of which must find its own
        serving = new_serving(held.authority, names, policy.serving_lifetime, now)
        return replace(held, serving=serving)
    if step is RotationStep.ADD:
        return replace(held, upcoming=new_authority(policy.authority_lifetime, now))
    if step is RotationStep.SWITCH and held.upcoming is not None:
        retired = RetiredAuthority(held.authority.certificate, held.serving.certificate)
        serving = new_serving(held.upcoming, policy.names, policy.serving_lifetime, now)
        return CertificateSet(held.upcoming, serving, retired=retired)
    if step is RotationStep.RETIRE:
        return replace(held, retired=None)
    return held


logger = logging.getLogger("beckon_operator.webhook")

_NOT_YET = "the certificates have not been read yet"


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


class CertificateRotator:
    """Keeps Secret, trust and the server's TLS context in step.

    Once `loaded` is set, `context` serves the certificate of the Secret, `serving`. `problem` is the reason
    why the API server cannot connect, or `None`.
    """

    def __init__(
        self,
        cluster: WebhookCluster,
        policy: RotationPolicy,
        metrics: WebhookMetrics,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.context = server_context()
        self.loaded = asyncio.Event()
        self._problem: str | None = _NOT_YET
        self._cluster, self._policy, self._metrics = cluster, policy, metrics
        self._clock = clock
        self.serving: CertificatePair | None = None
        self._upcoming: bytes | None = None
        self._upcoming_trusted_since: datetime | None = None
        self._complaint = ""

    @property
    def problem(self) -> str | None:
        """The reason why the API server cannot connect, or `None`."""
        if self.serving is not None and not is_valid(self.serving.certificate, self._clock()):
            return f"the certificate ended {_format_end(self.serving)}, and there is no other yet"
        return self._problem

    async def repeat_rounds(self, every: float) -> None:
        """Do a round every so many seconds, until cancelled."""
        while True:
            try:
                async for attempt in stamina.retry_context(
                    on=_is_temporary_failure, attempts=5, wait_jitter=0.1
                ):
                    with attempt:
                        await self.do_round()
                self._complaint = ""
            except Exception as error:
                # A process that ends serves no review: the loaded certificate stays in use after any error.
                self._log_failure(error)
            await asyncio.sleep(every)

    async def do_round(self) -> None:
        """Do one round: rotate, store, serve and publish as needed.

        Raises the errors of the API server, or `WriteConflict`.
        """
        # The trust first: a bundle may only be written over one that is older than the Secret that
        # it is made of, or a slow replica would take a newer authority out of it again.
        trust = await self._cluster.read_trust()
        stored = await self._cluster.read_secret()
        certificates = _read_stored(stored)
        self._watch_upcoming(certificates, trust)
        now = self._clock()
        step = decide_step(certificates, self._policy, now, self._upcoming_trusted_since)
        if step is not RotationStep.NOTHING:
            certificates = take_step(step, certificates, self._policy, now)
            await self._cluster.write_secret(certificates.to_secret(), stored)
            self._metrics.count_step(step)
            logger.info("certificates: %s; the server's now ends %s", step, _format_end(certificates.serving))
        if certificates is not None:
            self._serve_certificate(certificates)
            await self._establish_trust(certificates, trust)

    def _watch_upcoming(self, held: CertificateSet | None, trust: Trust | None) -> None:
        """Record since when the upcoming authority has been trusted."""
        pem = held.upcoming.certificate_pem if held is not None and held.upcoming is not None else None
        if pem is None or trust is None or not trust.holds(pem):
            self._upcoming = self._upcoming_trusted_since = None
        elif pem != self._upcoming:
            self._upcoming, self._upcoming_trusted_since = pem, self._clock()

    def _serve_certificate(self, held: CertificateSet) -> None:
        serving = held.serving
        if self.serving is not None and self.serving.certificate == serving.certificate:
            return
        load_pair(self.context, serving)
        self.serving = serving
        self._metrics.set_expiry(serving.certificate, held.authority.certificate)
        self.loaded.set()
        logger.info("serving a certificate that ends %s", _format_end(serving))

    async def _establish_trust(self, held: CertificateSet, trust: Trust | None) -> None:
        """Make the API server trust the present authorities."""
        if trust is None or not trust.bundles:
            self._set_problem("there is no MutatingWebhookConfiguration with a webhook in it; apply it")
            return
        if not trust.is_exactly(held.trust_bundle()):
            await self._cluster.publish_bundle(held.trust_bundle(), trust)
            logger.info("the caBundle of the MutatingWebhookConfiguration was written")
        self._set_problem(None)

    def _set_problem(self, problem: str | None) -> None:
        if problem != self._problem and problem is not None:
            logger.warning("not ready: %s", problem)
        self._problem = problem
        self._metrics.set_trusted(trusted=problem is None)

    def _log_failure(self, error: Exception) -> None:
        """Log a failure once, not every round."""
        self._metrics.count_upkeep_failure()
        text = (
            "other replicas write all the time" if isinstance(error, WriteConflict) else _one_line_of(error)
        )
        if not self.loaded.is_set():
            self._problem = f"the certificates cannot be looked after: {text}"
        if text != self._complaint:
            self._complaint = text
            unforeseen = None if isinstance(error, WriteConflict | ApiError) else error
            logger.warning(
                "the certificates cannot be looked after: %s; trying again", text, exc_info=unforeseen
            )


def load_pair(context: ssl.SSLContext, pair: CertificatePair) -> None:
    """Serve a certificate on new connections; open ones keep theirs."""
    with _as_file(pair.certificate_pem + pair.key_pem) as path:
        context.load_cert_chain(path)


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Yield the path of a file in memory. OpenSSL reads keys from files, and no disk should hold one."""
    descriptor = os.memfd_create("beckon-webhook", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _is_temporary_failure(error: Exception) -> bool:
    """Return True if a failure may be over in a moment."""
    return isinstance(error, WriteConflict) or is_temporary(error)


def _read_stored(stored: StoredSecret) -> CertificateSet | None:
    try:
        return read_certificate_set(stored.data)
    except UnusableCertificates as error:
        logger.warning("the Secret cannot be used, and is written anew: %s", error)
        return None


def _format_end(pair: CertificatePair) -> str:
    return pair.certificate.not_valid_after_utc.isoformat()


def _one_line_of(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
