from dataclasses import replace

import pytest

from beckon_operator.lease import Conflict, Leadership, LeaseRecord, Timing

TIMING = Timing(lasts=10, gives_up_after=7, tries_every=2)


class MemoryLease:
    """A Lease in memory, which refuses what the API server would refuse."""

    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self.version = 0
        self.down = False

    async def read(self) -> LeaseRecord | None:
        self._check()
        return self.record

    async def create(self, record: LeaseRecord) -> LeaseRecord:
        self._check()
        if self.record is not None:
            raise Conflict
        return self._store(record)

    async def replace(self, record: LeaseRecord) -> LeaseRecord:
        self._check()
        if self.record is None or record.version != self.record.version:
            raise Conflict
        return self._store(record)

    def _check(self) -> None:
        if self.down:
            raise ConnectionError

    def _store(self, record: LeaseRecord) -> LeaseRecord:
        self.version += 1
        self.record = replace(record, version=str(self.version))
        return self.record


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def lease() -> MemoryLease:
    return MemoryLease()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def replica(lease: MemoryLease, clock: Clock, name: str) -> Leadership:
    return Leadership(lease, name, TIMING, clock)


async def test_the_first_to_come_leads_and_the_second_does_not(lease: MemoryLease, clock: Clock) -> None:
    first, second = replica(lease, clock, "a"), replica(lease, clock, "b")
    await first.renew_or_take()
    await second.renew_or_take()

    assert (first.leads(), second.leads()) == (True, False)


async def test_a_leader_that_renews_stays(lease: MemoryLease, clock: Clock) -> None:
    first, second = replica(lease, clock, "a"), replica(lease, clock, "b")
    for _ in range(20):
        await first.renew_or_take()
        await second.renew_or_take()
        clock.now += 2

    assert (first.leads(), second.leads()) == (True, False)
    assert lease.record is not None
    assert lease.record.transitions == 0


async def test_a_crashed_leader_is_followed_once_its_lease_has_not_changed_for_its_duration(
    lease: MemoryLease, clock: Clock
) -> None:
    first, second = replica(lease, clock, "a"), replica(lease, clock, "b")
    await first.renew_or_take()
    await second.renew_or_take()
    clock.now += 9.9
    await second.renew_or_take()
    assert not second.leads()

    clock.now += 0.1
    await second.renew_or_take()
    assert second.leads()
    assert not first.leads()
    assert lease.record is not None
    assert (lease.record.holder, lease.record.transitions) == ("b", 1)


async def test_the_duration_counts_from_when_the_change_was_seen_whatever_the_lease_says(
    lease: MemoryLease, clock: Clock
) -> None:
    lease.record = LeaseRecord(
        "a", 10, "2000-01-01T00:00:00.000000Z", "2000-01-01T00:00:00.000000Z", version="0"
    )
    late = replica(lease, clock, "b")
    await late.renew_or_take()
    clock.now += 5
    await late.renew_or_take()
    assert not late.leads()

    lease.record = replace(lease.record, renewed="2000-01-01T00:00:05.000000Z", version="1")
    clock.now += 6
    await late.renew_or_take()
    clock.now += 9
    await late.renew_or_take()
    assert not late.leads()


async def test_a_leader_that_cannot_renew_stops_before_others_may_follow(
    lease: MemoryLease, clock: Clock
) -> None:
    leader = replica(lease, clock, "a")
    await leader.renew_or_take()
    lease.down = True
    clock.now += 6.9
    with pytest.raises(ConnectionError):
        await leader.renew_or_take()
    assert leader.leads()

    clock.now += 0.1
    assert not leader.leads()
    assert TIMING.gives_up_after < TIMING.lasts


async def test_a_leader_that_slept_long_does_not_lead_when_it_wakes(lease: MemoryLease, clock: Clock) -> None:
    first, second = replica(lease, clock, "a"), replica(lease, clock, "b")
    await first.renew_or_take()
    await second.renew_or_take()
    clock.now += 60
    assert not first.leads()
    await second.renew_or_take()
    await first.renew_or_take()

    assert (first.leads(), second.leads()) == (False, True)


async def test_of_two_that_take_a_free_lease_at_once_one_leads(lease: MemoryLease, clock: Clock) -> None:
    first, second = replica(lease, clock, "a"), replica(lease, clock, "b")
    seen = await lease.read()
    assert seen is None
    await first.renew_or_take()
    lease.record, winner = None, lease.record
    # The second read that there was no Lease before the first created it.
    real_read = lease.read

    async def read_before() -> LeaseRecord | None:
        lease.record = winner
        return None

    lease.read = read_before  # type: ignore[method-assign]  # the moment between reading and writing
    await second.renew_or_take()
    lease.read = real_read  # type: ignore[method-assign]  # and back

    assert (first.leads(), second.leads()) == (True, False)


async def test_a_lease_that_is_let_go_is_taken_at_once(lease: MemoryLease, clock: Clock) -> None:
    first, second = replica(lease, clock, "a"), replica(lease, clock, "b")
    await first.renew_or_take()
    await second.renew_or_take()
    await first.release_lease()
    assert not first.leads()

    await second.renew_or_take()
    assert second.leads()


async def test_who_has_left_does_not_lead_again(lease: MemoryLease, clock: Clock) -> None:
    leader = replica(lease, clock, "a")
    await leader.renew_or_take()
    await leader.release_lease()
    await leader.renew_or_take()

    assert not leader.leads()


async def test_letting_go_what_another_holds_changes_nothing(lease: MemoryLease, clock: Clock) -> None:
    first, second = replica(lease, clock, "a"), replica(lease, clock, "b")
    await first.renew_or_take()
    await second.renew_or_take()
    await second.release_lease()
    lease.down = True
    await first.release_lease()

    assert lease.record is not None
    assert lease.record.holder == "a"
