from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from beckon_operator.webhook.certificates import (
    CertificatePair,
    CertificateSet,
    RetiredAuthority,
    is_signed_by,
    is_valid,
    names_of,
    new_authority,
    new_serving,
    to_pem,
)
from beckon_operator.webhook.rotation import RotationPolicy, RotationStep, decide_step, take_step

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
POLICY = RotationPolicy(
    names=frozenset({"beckon-webhook.beckon.svc"}),
    serving_lifetime=90 * DAY,
    authority_lifetime=1800 * DAY,
    settle=timedelta(seconds=60),
)
OTHER_NAMES = replace(POLICY, names=frozenset({"hook.beckon.svc", "127.0.0.1"}))
TRUSTED_LONG = START - DAY


def held(*, authority_age: timedelta = timedelta(0), serving_age: timedelta = timedelta(0)) -> CertificateSet:
    """Return what is held at START, by the ages of its certificates."""
    authority = new_authority(POLICY.authority_lifetime, START - authority_age)
    return CertificateSet(authority, serving(authority, serving_age))


def serving(authority: CertificatePair, age: timedelta = timedelta(0)) -> CertificatePair:
    return new_serving(authority, POLICY.names, POLICY.serving_lifetime, START - age)


def upcoming(age: timedelta = timedelta(0)) -> CertificatePair:
    return new_authority(POLICY.authority_lifetime, START - age)


def retired(age: timedelta) -> RetiredAuthority:
    """Return an authority before the present one, by the age of the last certificate that it signed."""
    authority = new_authority(POLICY.authority_lifetime, START - 1500 * DAY)
    return RetiredAuthority(authority.certificate, serving(authority, age).certificate)


def step(
    held: CertificateSet | None, policy: RotationPolicy = POLICY, since: datetime | None = None
) -> RotationStep:
    return decide_step(held, policy, START, since)


def test_without_anything_usable_all_is_made() -> None:
    assert step(None) is RotationStep.CREATE


def test_what_is_young_is_left_alone() -> None:
    assert step(held(authority_age=1000 * DAY, serving_age=50 * DAY)) is RotationStep.NOTHING


@pytest.mark.parametrize(
    ("age", "expected"),
    [(59 * DAY, RotationStep.NOTHING), (60 * DAY, RotationStep.RENEW), (91 * DAY, RotationStep.RENEW)],
)
def test_a_certificate_is_renewed_after_two_thirds_of_its_life(
    age: timedelta, expected: RotationStep
) -> None:
    assert step(held(authority_age=200 * DAY, serving_age=age)) is expected


def test_a_certificate_from_the_future_is_renewed() -> None:
    assert step(held(serving_age=-2 * DAY)) is RotationStep.RENEW


def test_a_certificate_for_too_few_names_is_renewed() -> None:
    assert step(held(), OTHER_NAMES) is RotationStep.RENEW


def test_a_certificate_for_more_names_will_do() -> None:
    assert step(take_step(RotationStep.RENEW, held(), OTHER_NAMES, START)) is RotationStep.NOTHING


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (1199 * DAY, RotationStep.NOTHING),
        (1201 * DAY, RotationStep.ADD),
        (1801 * DAY, RotationStep.CREATE),
        (-2 * DAY, RotationStep.CREATE),
    ],
)
def test_an_authority_is_replaced_after_two_thirds_of_its_life(
    age: timedelta, expected: RotationStep
) -> None:
    assert step(replace(held(), authority=upcoming(age))) is expected


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (None, RotationStep.NOTHING),
        (START - timedelta(seconds=59), RotationStep.NOTHING),
        (START - timedelta(seconds=60), RotationStep.SWITCH),
    ],
)
def test_an_authority_signs_only_after_it_was_trusted_for_a_while(
    since: datetime | None, expected: RotationStep
) -> None:
    assert step(replace(held(authority_age=1300 * DAY), upcoming=upcoming()), since=since) is expected


def test_an_authority_that_ended_before_it_was_trusted_is_replaced() -> None:
    waited = replace(held(authority_age=1300 * DAY), upcoming=upcoming(1801 * DAY))

    assert step(waited, since=TRUSTED_LONG) is RotationStep.ADD


@pytest.mark.parametrize("since", [None, TRUSTED_LONG])
def test_an_authority_that_has_ended_is_replaced_by_the_upcoming_one(since: datetime | None) -> None:
    ended = replace(held(), authority=upcoming(1801 * DAY), upcoming=upcoming(500 * DAY))

    assert step(ended, since=since) is RotationStep.SWITCH


def test_without_a_valid_upcoming_authority_an_ended_one_is_made_anew() -> None:
    both_ended = replace(held(), authority=upcoming(2400 * DAY), upcoming=upcoming(1801 * DAY))

    assert step(both_ended, since=TRUSTED_LONG) is RotationStep.CREATE


def test_the_servers_certificate_is_renewed_before_anything_is_rotated() -> None:
    due = replace(held(authority_age=1300 * DAY, serving_age=70 * DAY), upcoming=upcoming())

    assert step(due, since=TRUSTED_LONG) is RotationStep.RENEW


@pytest.mark.parametrize(
    ("age", "expected"), [(89 * DAY, RotationStep.NOTHING), (90 * DAY, RotationStep.RETIRE)]
)
def test_an_authority_is_trusted_until_the_last_that_it_signed_has_ended(
    age: timedelta, expected: RotationStep
) -> None:
    assert step(replace(held(), retired=retired(age))) is expected


def test_no_authority_is_added_while_another_is_still_trusted_for_what_it_signed() -> None:
    assert step(replace(held(authority_age=1300 * DAY), retired=retired(10 * DAY))) is RotationStep.NOTHING


@pytest.mark.parametrize("before", [None, held()])
def test_create_makes_a_new_authority_and_a_certificate_for_the_names(before: CertificateSet | None) -> None:
    made = take_step(RotationStep.CREATE, before, POLICY, START)

    assert made.authority.certificate != (before.authority.certificate if before else None)
    assert is_signed_by(made.serving.certificate, made.authority.certificate)
    assert names_of(made.serving.certificate) == POLICY.names
    assert made.trust_bundle() == made.authority.certificate_pem


def test_renewing_keeps_the_authority_and_drops_names_that_no_one_wants() -> None:
    before = take_step(RotationStep.RENEW, held(), OTHER_NAMES, START)

    made = take_step(RotationStep.RENEW, before, POLICY, START + 61 * DAY)

    assert made.authority == before.authority
    assert is_valid(made.serving.certificate, START + 150 * DAY)
    assert names_of(made.serving.certificate) == POLICY.names
    assert names_of(before.serving.certificate) == POLICY.names | OTHER_NAMES.names


def test_a_certificate_never_outlives_its_authority() -> None:
    authority = new_authority(POLICY.authority_lifetime, START - 1790 * DAY)

    made = serving(authority)

    assert made.certificate.not_valid_after_utc == authority.certificate.not_valid_after_utc


def test_an_authority_changes_in_four_steps_and_trust_comes_first() -> None:
    first = held(authority_age=1300 * DAY)
    added = take_step(RotationStep.ADD, first, POLICY, START)
    switched = take_step(RotationStep.SWITCH, added, POLICY, START)
    done = take_step(RotationStep.RETIRE, switched, POLICY, START + 90 * DAY)

    assert added.upcoming is not None
    pems = [first.authority.certificate_pem, added.upcoming.certificate_pem]
    assert (added.authority, added.serving) == (first.authority, first.serving)
    assert sorted(parts(added)) == sorted(parts(switched)) == sorted(pems)
    assert is_signed_by(switched.serving.certificate, added.upcoming.certificate)
    assert switched.retired == RetiredAuthority(first.authority.certificate, first.serving.certificate)
    assert parts(done) == [pems[1]]
    assert step(done) is RotationStep.NOTHING


def parts(held: CertificateSet) -> list[bytes]:
    end = b"-----END CERTIFICATE-----\n"
    return [part + end for part in held.trust_bundle().split(end) if part]


def test_nothing_to_do_changes_nothing() -> None:
    before = held()

    assert take_step(RotationStep.NOTHING, before, POLICY, START) == before
    assert to_pem(before.serving.certificate) == before.serving.certificate_pem
