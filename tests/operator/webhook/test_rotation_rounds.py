"""Several replicas that keep one Secret and one configuration, in every order of their steps."""

from collections.abc import Generator
from datetime import timedelta

import pytest
from cryptography import x509
from hypothesis import example, given, settings
from hypothesis import strategies as st

from beckon_operator.webhook.certificates import is_signed_by, is_valid, read_certificate_set
from beckon_operator.webhook.cluster import StoredSecret, WriteConflict
from beckon_operator.webhook.metrics import WebhookMetrics
from beckon_operator.webhook.rotation import CertificateRotator, RotationPolicy
from tests.operator.webhook.objects import Objects

SECOND = timedelta(seconds=1)
SETTLE = 20 * SECOND
# So slow that the authority ends before the next one has signed, though that was trusted long before.
SLOW_SWITCH = [
    *((0, 0), (0, 7), (0, 30), (0, 30), (0, 30), (0, 30), (1, 0), (1, 0), (2, 0), (2, 7), (2, 30), (1, 30)),
    *((1, 0), (0, 0), (0, 0), (0, 30), (2, 30), (0, 30), (0, 0), (0, 0), (0, 0), (0, 0), (1, 0), (1, 0)),
    *((1, 7), (1, 0), *[(0, 0)] * 14),
]
POLICY = RotationPolicy(frozenset({"a.b.svc"}), 300 * SECOND, 900 * SECOND, SETTLE)
REPLICAS = 3


class Replica:
    """A rotator whose rounds go on by one request at a time."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.rotator = CertificateRotator(objects, POLICY, WebhookMetrics(), lambda: objects.now)
        self._round: Generator[None] | None = None

    def go_on(self) -> None:
        if self._round is None:
            self._round = self.rotator.do_round().__await__()
        try:
            next(self._round)
        except (StopIteration, WriteConflict):
            self._round = None

    def finish(self) -> None:
        self.go_on()
        while self._round is not None:
            self.go_on()

    def check(self) -> None:
        """See that no API server would refuse what is served."""
        assert self.rotator.serving is not None
        served = self.rotator.serving.certificate
        if is_valid(served, self.objects.now):
            for trusted in self.objects.believed(SETTLE):
                assert any(is_signed_by(served, authority) for authority in trusted)


def has_ended_without_successor(objects: Objects) -> bool:
    """Return True if the authority has ended, and no other has been trusted for long."""
    held = read_certificate_set(objects.secret.data)
    assert held is not None
    if is_valid(held.authority.certificate, objects.now):
        return False
    return held.upcoming is None or any(
        held.upcoming.certificate not in trusted for trusted in objects.believed(SETTLE)
    )


def started() -> tuple[Objects, list[Replica]]:
    """Return replicas that serve already, and whose first trust has settled."""
    objects = Objects()
    replicas = [Replica(objects) for _ in range(REPLICAS)]
    for replica in replicas:
        replica.finish()
    objects.now += SETTLE
    return objects, replicas


@pytest.mark.timeout(300)  # it makes hundreds of certificates
@settings(max_examples=20)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, REPLICAS - 1), st.sampled_from([0, 0, 1, 7, 30])), min_size=40, max_size=80
    )
)
@example(SLOW_SWITCH)
def test_whatever_order_replicas_act_in_all_they_serve_is_trusted(steps: list[tuple[int, int]]) -> None:
    objects, replicas = started()
    # A schedule of the test's own in front brings everything near to the rotation of the authority.
    objects.now += 590 * SECOND
    for replica in replicas:
        replica.finish()

    for index, seconds in steps:
        objects.now += seconds * SECOND
        if has_ended_without_successor(objects):
            # Only requests of half a minute each, at lifetimes of minutes, get this far: whatever is
            # served next can be trusted only later. At lifetimes of years there are months to add one.
            return
        replicas[index].go_on()
        for replica in replicas:
            replica.check()


def test_authorities_come_and_go_and_at_last_only_one_is_trusted() -> None:
    objects, replicas = started()
    seen = set()

    for second in range(0, 3000, 5):
        objects.now += 5 * SECOND
        replicas[second % REPLICAS].finish()
        for replica in replicas:
            replica.check()
        seen.add(objects.bundles[-1][1])

    held = read_certificate_set(objects.secret.data)
    assert held is not None
    sizes = {len(x509.load_pem_x509_certificates(bundle)) for bundle in seen}
    assert sizes == {1, 2}
    assert len({x509.load_pem_x509_certificates(bundle)[0].serial_number for bundle in seen}) >= 4


def test_replicas_that_start_at_once_serve_what_the_first_has_made() -> None:
    objects = Objects()
    replicas = [Replica(objects) for _ in range(REPLICAS)]

    for _ in range(12):
        for replica in replicas:
            replica.go_on()
    objects.now += SETTLE

    assert objects.secret.version == "1"
    assert len({replica.rotator.serving and replica.rotator.serving.certificate for replica in replicas}) == 1
    for replica in replicas:
        replica.check()
        assert replica.rotator.problem is None


def test_a_certificate_that_has_ended_is_reported_until_there_is_another() -> None:
    objects, (replica, *_) = started()
    assert replica.rotator.problem is None

    objects.now += POLICY.serving_lifetime
    assert "the certificate ended" in str(replica.rotator.problem)

    replica.finish()
    assert replica.rotator.problem is None


def test_a_bundle_that_others_reset_is_put_back() -> None:
    objects, replicas = started()
    before = objects.bundles[-1][1]
    objects.bundles.append((objects.now, b""))

    replicas[0].finish()

    assert objects.bundles[-1][1] == before


def test_a_secret_that_others_broke_is_made_anew() -> None:
    objects, replicas = started()
    objects.secret = StoredSecret({**objects.secret.data, "tls.key": b"x"}, objects.secret.version)

    for replica in replicas:
        replica.finish()

    objects.now += SETTLE + SECOND
    for replica in replicas:
        replica.check()
        assert replica.rotator.problem is None
