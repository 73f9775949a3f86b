"""Whether a model answers: its server is asked for its models, now and then, with the agent's key."""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from beckon_agent.hosting.models import ModelPool, ModelSpec, SharedModel
from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import ModelAuthError, ModelError, ModelRefused
from beckon_contract.conditions import Status

logger = logging.getLogger(__name__)

_JITTER = (0.8, 1.2)  # so that replicas, and models, are not all asked in the same moment
_PATIENCE = 10.0
_SHOWN = 5  # names of models in a message
_SHOWN_NAME = 80  # characters


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a probe found: a condition's status and reason, and what to tell of it.

    `detail` holds none of the server's own words but names of models: whoever writes an Agent
    chooses the server, and should not read through its status what it says to this service.
    """

    status: Status
    reason: str
    detail: str = ""


NOT_ASKED = Verdict("Unknown", "NotAsked", "the model has not been asked yet")


class Probes:
    """Asks every model in use; `changed` is called with the one whose verdict is another than before."""

    def __init__(self, pool: ModelPool, changed: Callable[[ModelSpec], None], period: float) -> None:
        self._pool = pool
        self._changed = changed
        self._period = period
        self._verdicts: dict[ModelSpec, Verdict] = {}
        self._tasks: dict[ModelSpec, asyncio.Task[None]] = {}

    def verdict(self, spec: ModelSpec) -> Verdict:
        """Return what the last probe of a model found."""
        return self._verdicts.get(spec, NOT_ASKED)

    def follow(self) -> None:
        """Begin to ask the models that have come into use, and stop asking those that nobody uses."""
        used = {shared.spec: shared for shared in self._pool.open()}
        for spec in self._tasks.keys() - used.keys():
            self._tasks.pop(spec).cancel()
            self._verdicts.pop(spec, None)
        for spec in used.keys() - self._tasks.keys():
            self._tasks[spec] = asyncio.create_task(self._ask_again_and_again(used[spec]))

    async def close(self) -> None:
        """Stop asking."""
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def _ask_again_and_again(self, shared: SharedModel) -> None:
        while True:
            try:
                found = await judge(shared.client, shared.spec.name)
            except Exception:  # a mistake of ours is no verdict on the model
                logger.exception("probing a model failed")
                found = NOT_ASKED
            if found != self.verdict(shared.spec):
                self._verdicts[shared.spec] = found
                self._changed(shared.spec)
            await asyncio.sleep(self._period * random.uniform(*_JITTER))  # noqa: S311  # jitter is no secret


async def judge(client: ModelClient, name: str) -> Verdict:
    """Return whether a server answers, takes the key, and has the model, `""` meaning its first."""
    try:
        async with asyncio.timeout(_PATIENCE):
            names = await client.models()
            if name and not _listed(name, names) and not await client.knows(name):
                return _missing(name, names)
    except ModelAuthError:
        return Verdict("False", "Unauthorized", "the server does not accept the key")
    except ModelRefused as error:
        return Verdict(
            "Unknown", "NoModelList", f"the server answers {error.status} when asked for its models"
        )
    except ModelError as error:
        if error.status is not None:
            return Verdict("False", "Unavailable", f"the server answers {error.status}")
        return Verdict("False", "Unreachable", "the server cannot be reached")
    except TimeoutError:
        return Verdict("False", "Unreachable", f"the server gives no answer within {_PATIENCE:g} seconds")
    if not names:
        return Verdict("Unknown", "NoModelList", "the server lists no model")
    return Verdict("True", "Answers")


def _listed(name: str, names: Sequence[str]) -> bool:
    """Whether a list has a model, also as some servers write it: with a tag, or below a folder."""
    return any(one == name or one.startswith(f"{name}:") or one.endswith(f"/{name}") for one in names)


def _missing(name: str, names: Sequence[str]) -> Verdict:
    if not names:
        return Verdict("Unknown", "NoModelList", "the server lists no model")
    shown = ", ".join(one[:_SHOWN_NAME] for one in names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return Verdict("False", "NoSuchModel", f"the server has no model {name!r}; it has {shown}")
