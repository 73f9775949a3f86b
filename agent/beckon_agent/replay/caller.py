"""A caller that answers with what was recorded."""

from beckon_agent.calling.caller import AnswersLater, Caller
from beckon_agent.calling.exchange import Outcome
from beckon_agent.calling.prepared import Prepared
from beckon_agent.replay.order import End, Order
from beckon_agent.replay.recording import Recording
from beckon_agent.runs import Agent, CallFinished
from beckon_contract.tools import Tool


class RecordedCaller(Caller):
    """Answers calls as they were answered then, in the same order; nothing is sent to anybody."""

    def __init__(self, recording: Recording, order: Order, end: End) -> None:
        self.calls = {call.event_id: call for call in recording.past.calls}
        self._seconds = {event.id: event.seconds for event in recording.finished()}
        self._late = recording.late()
        self._order = order
        self._end = end

    async def make(
        self, call: Prepared, *, event_id: str, agent: Agent, remaining: float, may_be_late: bool = False
    ) -> CallFinished:
        """Answer a call; one that is refused today is answered with its refusal."""
        recorded = self.calls.get(event_id)
        if recorded is None:  # of a turn that is not played as it was
            await self._end.stay()
        if may_be_late and recorded.id in self._late and isinstance(call.way, Tool):
            raise AnswersLater  # as then; its answer is handed in once the run waits for it
        await self._order.turn_of(recorded)
        result, failed = recorded.result, recorded.failed
        if isinstance(call.way, Outcome):
            result, failed = call.way.result, call.way.failed
        elif recorded.state != "done":
            await self._end.stay()
        seconds = self._seconds.get(recorded.id, recorded.seconds or 0.0)
        asked = call.asked
        return CallFinished(asked.id, asked.name, result, failed, seconds, recorded.tokens)
