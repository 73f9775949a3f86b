"""A client's message as a new task, or as the decision that a task waits for."""

import hashlib
import time
from dataclasses import dataclass

from a2a.types.a2a_pb2 import Message, Role, SendMessageRequest
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from beckon_agent.api.a2a.calls import A2aCall
from beckon_agent.api.a2a.messages import message_digest, to_chat_message
from beckon_agent.api.a2a.person import ApprovalDecision, FilledForm, read_answers
from beckon_agent.api.a2a.targets import TargetOperations
from beckon_agent.api.a2a.tasks import FACE, context_of, pending_calls
from beckon_agent.api.responses.items import says_something
from beckon_agent.core.records import FINAL, NewRun, StoredCall, StoredConversation, StoredRun
from beckon_agent.core.run_types import Options
from beckon_agent.durable.base import Ask, Engine
from beckon_agent.store.base import RunExists, Store
from beckon_contract.inputs import InputRequest, InvalidInput

_MOST_ID = 300
_SHOWN = 80


def conversation_of(owner: str, context: str) -> str:
    """Return the conversation id of an owner's own context id.

    It is another one for each owner, so that no client learns of the contexts of others.
    """
    digest = hashlib.sha256(f"{owner}\n{context}".encode())
    return f"conv_{digest.hexdigest()[:32]}"


@dataclass(frozen=True, slots=True)
class TaskCreator:
    """Begins the runs of messages, and continues waiting ones."""

    engine: Engine
    store: Store
    targets: TargetOperations

    async def accept_message(self, params: SendMessageRequest, call: A2aCall) -> StoredRun:
        """Return the run of a message. The same message again is that of the run begun before.

        Raises the errors of the protocol, and those of `Engine.start`.
        """
        _check_request(params)
        message = params.message
        run_id = message.task_id or f"task_{message_digest(call.owner, call.hosted.name, message)[:32]}"
        notified = params.configuration.HasField("task_push_notification_config")
        config = params.configuration.task_push_notification_config
        if notified:
            self.targets.read_target(run_id, config)  # refused before anything begins
        if message.task_id:
            run = await self._continue_task(message, call)
        else:
            run = await self.engine.get(run_id) or await self._start_task(run_id, message, call)
        if notified:
            await self.targets.put_target(run.id, config)
        return run

    async def _start_task(self, run_id: str, message: Message, call: A2aCall) -> StoredRun:
        chat_message = to_chat_message(message)
        if not says_something([chat_message]):
            raise InvalidParamsError("message.parts: there is nothing to answer; send a part with text")
        conversation, is_new = await self._open_conversation(run_id, message.context_id, call.owner)
        new = NewRun(
            id=run_id,
            owner=call.owner,
            agent=call.hosted.name,
            face=FACE,
            input=[chat_message],
            request={FACE: {"context": message.context_id or conversation, "message": message.message_id}},
            conversation=conversation,
            background=True,  # a task outlives the connection of its client
        )
        try:
            return await self.engine.start(Ask(new, call.hosted, Options()))
        except RunExists:  # the same message came twice at this moment
            return await self.engine.get(run_id) or _raise_deleted(run_id)
        except Exception:
            if is_new:
                await self.store.conversations.close(conversation)
            raise

    async def _open_conversation(self, run_id: str, context: str, owner: str) -> tuple[str, bool]:
        """Return the conversation of a context id, and whether it is new."""
        conversations = self.store.conversations
        conversation = await conversations.find(context) if context else None
        if conversation is not None and conversation.owner == owner:  # a conversation of another API
            return conversation.id, False
        conversation_id = conversation_of(owner, context or run_id)
        if await conversations.find(conversation_id) is not None:
            return conversation_id, False
        opened = StoredConversation(id=conversation_id, owner=owner, metadata={}, created_at=time.time())
        try:
            await conversations.open(opened, [])
        except ValueError:  # another task of the context has opened it at this moment
            return conversation_id, False
        return conversation_id, True

    async def _continue_task(self, message: Message, call: A2aCall) -> StoredRun:
        run = await self.engine.get(message.task_id)
        if run is None or (run.owner, run.agent, run.face) != (call.owner, call.hosted.name, FACE):
            raise TaskNotFoundError(f"there is no task {message.task_id[:_SHOWN]!r}; leave out 'taskId'")
        context = context_of(run)
        if message.context_id and message.context_id != context:
            raise InvalidParamsError(f"message.contextId: the task is of the context {context[:_SHOWN]!r}")
        if run.status in FINAL:
            cure = "send the message with its 'contextId' and without 'taskId'"
            raise UnsupportedOperationError(f"the task has ended, it is {run.status}; {cure}")
        pending = pending_calls((await self.store.runs.load_past(run.id)).calls)
        if not pending:
            raise UnsupportedOperationError("the task still works; wait for its end, or cancel it")
        calls = {one.event_id: one for one in pending}
        answers = read_answers(message, pending)
        # All forms are read before the first answer counts.
        filled = {
            one.id: _fill_form(one, calls[one.event_id]) for one in answers if isinstance(one, FilledForm)
        }
        for one in answers:
            counted = (
                await self.engine.decide_call(one.event_id, one.decision, by=call.owner, reason=one.reason)
                if isinstance(one, ApprovalDecision)
                else await self.engine.answer_input(one.event_id, filled[one.id])
            )
            if not counted:
                raise UnsupportedOperationError(f"{one.id}: another answer was given at this moment")
        return await self.engine.get(run.id) or _raise_deleted(run.id)


def _fill_form(form: FilledForm, call: StoredCall) -> InputRequest:
    """Return a call's request with the answer to its form; raise `InvalidParamsError` if it does not fit."""
    try:
        return form.fill_form(call)
    except InvalidInput as error:
        raise InvalidParamsError(f"message.parts: data.inputs: {form.id[:120]}: {error}") from None


def _raise_deleted(run_id: str) -> StoredRun:
    raise TaskNotFoundError(f"the task {run_id} was deleted at this moment; send the message again")


def _check_request(params: SendMessageRequest) -> None:
    """Raise for a message that no task is made of."""
    message, configuration = params.message, params.configuration
    for name, value in (("messageId", message.message_id), ("contextId", message.context_id)):
        if len(value) > _MOST_ID:
            raise InvalidParamsError(f"message.{name}: at most {_MOST_ID} characters")
    if message.role != Role.ROLE_USER:
        raise InvalidParamsError("message.role: a client's message has the role ROLE_USER")
    modes = configuration.accepted_output_modes
    if modes and not any(mode.startswith(("text", "*", "application/json")) for mode in modes):
        raise ContentTypeNotSupportedError("the agent answers in text; accept 'text/plain'")
