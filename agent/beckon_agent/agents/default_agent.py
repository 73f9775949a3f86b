"""An Agent resource as an agent, completed from the service's settings."""

from dataclasses import dataclass, replace

from beckon_agent.agents.keys import Key, KeyRing, NoModel, SecretEntry
from beckon_agent.agents.model_pool import ModelSpec
from beckon_agent.core.run_types import Agent, Limits
from beckon_contract.resources.agent_resource import AgentLimits, AgentResource


@dataclass(frozen=True, slots=True)
class Own:
    """The agent of the service's own settings.

    Other Agents take from it the values they leave out.
    """

    agent: Agent
    model: ModelSpec

    def name_of(self, namespace: str, name: str) -> str:
        """Return the name of an agent in the API.

        It is the bare name in the service's own namespace, else NAMESPACE/NAME.
        """
        return name if namespace == self.agent.namespace else f"{namespace}/{name}"

    def place_of(self, name: str) -> tuple[str, str]:
        """Return namespace and name of an agent from its API name."""
        namespace, slash, bare = name.partition("/")
        return (namespace, bare) if slash else (self.agent.namespace, name)


def agent_of(written: AgentResource, own: Own) -> Agent:
    """Return the agent of an Agent resource, for runs."""
    prompt = own.agent.system_prompt if written.system_prompt is None else written.system_prompt
    limits = _merge_limits(written.limits, own.agent.limits)
    pinned = own.agent.pinned if written.pinned is None else written.pinned
    return Agent(written.name, written.namespace, prompt, limits, written.terms, pinned)


def wanted_key(written: AgentResource) -> SecretEntry | None:
    """Return the key named by an Agent."""
    secret = written.model.api_key
    return None if secret is None else SecretEntry(written.namespace, secret)


def model_of(written: AgentResource, own: Own, keys: KeyRing) -> ModelSpec | NoModel | None:
    """Return the model of an Agent, or the reason it has none.

    `None` while its key is not read yet. The service's own key goes to the service's own server and to no
    other: an Agent with a server and no Secret is used without a key.
    """
    reference = written.model
    if reference.base_url is None:
        model = replace(
            own.model,
            name=reference.name or own.model.name,
            dialect=reference.dialect or own.model.dialect,
            text_calls=written.text_calls or own.model.text_calls,
        )
        return model if model.base_url else NO_SERVER
    text_calls = written.text_calls or own.model.text_calls
    model = ModelSpec(reference.base_url, reference.name or "", reference.dialect or "auto", "", text_calls)
    wanted = wanted_key(written)
    if wanted is None:
        return model
    found = keys.find_key(wanted)
    return replace(model, api_key=found.value) if isinstance(found, Key) else found


NO_SERVER = NoModel(
    "NoModel", "no model is configured; set spec.model.baseURL, or OPENAI_BASE_URL of the agent service"
)


def _merge_limits(written: AgentLimits, own: Limits) -> Limits:
    return Limits(
        steps=written.steps or own.steps,
        seconds=written.seconds or own.seconds,
        tokens=written.tokens or own.tokens,
        parallel_calls=written.parallel_calls or own.parallel_calls,
        result_chars=written.result_chars or own.result_chars,
        call_timeout=written.call_timeout or own.call_timeout,
        tools=written.tools or own.tools,
        late_seconds=own.late_seconds,
        calls_per_turn=written.calls_per_turn or own.calls_per_turn,
        repeated_calls=written.repeated_calls or own.repeated_calls,
    )
