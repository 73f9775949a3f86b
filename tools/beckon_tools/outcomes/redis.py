"""The ledger in Redis or a compatible server: one key for each call.

The key expires by itself.
"""

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

from redis.asyncio import Redis
from redis.exceptions import RedisError

from beckon_tools.outcomes.ledger import Claim, Unavailable

_SECONDS = 5.0
_HELD, _DONE = b"h", b"d"  # how the value of a call begins: its owner follows, or its outcome

# Compare and act in one step; KEYS[1] is the call, ARGV[1] the value of its owner.
_CLAIM = """
local known = redis.call('GET', KEYS[1])
if known then return known end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return false
"""
_RENEW = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""
_KEEP = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
"""
_RELEASE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
"""
_COUNT = """
local number = redis.call('INCR', KEYS[1])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return number
"""


class RedisLedger:
    """A `Ledger` at the address `url`, connected when it is used first."""

    def __init__(self, url: str) -> None:
        self._redis: Redis = Redis.from_url(url, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS)

    async def claim(self, key: str, owner: str, lease: float) -> Claim:
        """Claim a call, unless it has an owner or an outcome."""
        mine = _HELD + owner.encode()
        known = await self._run_script(_CLAIM, key, mine, _to_milliseconds(lease))
        if known is None or known == mine:
            return Claim(mine=True)
        value = cast("bytes", known)
        return Claim(mine=False, data=value[1:] if value[:1] == _DONE else None)

    async def renew(self, key: str, owner: str, lease: float) -> bool:
        """Extend the lease of a call; `False` if the owner has lost it."""
        return bool(await self._run_script(_RENEW, key, _HELD + owner.encode(), _to_milliseconds(lease)))

    async def store_outcome(self, key: str, owner: str, data: bytes, ttl: float) -> None:
        """Write the outcome of a call, if it is still the owner's."""
        await self._run_script(_KEEP, key, _HELD + owner.encode(), _DONE + data, _to_milliseconds(ttl))

    async def release(self, key: str, owner: str) -> None:
        """Give a call up without an outcome, if it is still the owner's."""
        await self._run_script(_RELEASE, key, _HELD + owner.encode())

    async def count(self, key: str, ttl: float) -> int:
        """Increment the number of a key and return it. The number is stored for `ttl` seconds from now."""
        return cast("int", await self._run_script(_COUNT, key, _to_milliseconds(ttl)))

    async def close(self) -> None:
        """Close every connection; raises nothing."""
        with suppress(RedisError, OSError):
            await self._redis.aclose()

    async def _run_script(self, script: str, key: str, *arguments: Any) -> object:
        with _convert_errors():
            return await cast("Awaitable[object]", self._redis.eval(script, 1, key, *arguments))


def _to_milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


@contextmanager
def _convert_errors() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        raise Unavailable(f"Redis does not answer: {type(error).__name__}") from error
