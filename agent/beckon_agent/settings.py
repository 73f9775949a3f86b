"""The agent's settings, read once in `__main__` and passed down."""

from collections.abc import Callable
from pathlib import Path
from typing import Self

from pydantic import AliasChoices, Field, SecretStr, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from beckon_agent.auth.options import AccessOptions, OidcOptions
from beckon_agent.core.context import Principal
from beckon_contract.kubernetes_objects import DNS_LABEL
from beckon_contract.resources.agent_resource import TextCalls
from beckon_contract.resources.agent_terms import KEY_PREFIX, OIDC_PREFIX
from beckon_runtime.settings import HostList, ServingSettings, port_field

DEFAULT_SYSTEM_PROMPT = (
    "You are a helpful assistant. Use the tools you are given when they help to answer; "
    "when a tool reports an error, tell the user or try another way."
)
ALL_NAMESPACES = "*"


class Settings(ServingSettings):
    """What the agent service reads from its environment."""

    model_config = SettingsConfigDict(env_prefix="BECKON_", extra="ignore", populate_by_name=True)

    port: int = port_field(8080, "The port of the agent")
    metrics_port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="A port of its own for /metrics, which then is at no other: every caller that reaches it "
        "reads the names of agents and tools.",
    )
    tls_folder: Path | None = Field(
        None,
        description="The folder of a certificate, tls.crt, and its key, tls.key, as Kubernetes mounts a "
        "Secret of the type kubernetes.io/tls: HTTPS is served as well, at BECKON_TLS_PORT. A renewed "
        "certificate is served within seconds.",
    )
    tls_port: int = Field(8443, ge=1, le=65535, description="The port of HTTPS, with BECKON_TLS_FOLDER.")
    metrics_users: str = Field(
        "",
        description="Without that port: who may read /metrics, key:NAME or oidc:SUBJECT separated by "
        "commas, or * for every admitted caller; unset: only callers of this machine, where the agent "
        "listens on loopback and neither keys nor an issuer are set.",
    )
    manifests: str = Field(
        "deploy/examples",
        description="The folder of EventTypes and Triggers; several are separated by a colon.",
    )
    secrets: Path | None = Field(
        None,
        description="With folders of manifests: the folder of the Secrets that Agents name for their models, "
        "each key in a file NAME/KEY, as Kubernetes mounts them.",
    )
    namespaces: str = Field(
        "",
        description="In a cluster: the namespaces whose Tools and Agents are served, separated by commas, "
        "or * for all; then no folder is read.",
    )
    kubeconfig: str = Field(
        "",
        validation_alias=AliasChoices("KUBECONFIG", "kubeconfig"),
        description="With BECKON_NAMESPACES, outside a pod: the kubeconfig of the cluster.",
    )
    store: SecretStr = Field(
        SecretStr("sqlite://"),
        description="Where runs are stored: sqlite:///FILE, postgresql://USER:PASSWORD@HOST/DATABASE, or "
        "sqlite:// for memory, which is lost with the process and shared with no other.",
    )
    lease_seconds: float = Field(
        6,
        ge=0.5,
        le=300,
        description="Seconds after a replica's last sign of life until another one continues its runs.",
    )
    answer_sink: str = Field(
        "",
        validation_alias=AliasChoices("K_SINK", "answer_sink"),
        pattern=r"^(https?://.+)?$",
        description="The Broker for answers to events whose runs had to wait, as a SinkBinding sets it; "
        "without one these runs end with a time-out.",
    )
    shim_keys: SecretStr = Field(
        SecretStr(""),
        description="The shim's BECKON_SHIM_KEYS: calls to it are signed with them, and late replies prove "
        "which call they answer.",
    )
    shim_keys_file: Path | None = Field(
        None, description="The shim's BECKON_SHIM_KEYS_FILE, for the same; read again when it changes."
    )
    shim_url: str = Field("http://127.0.0.1:8082", description="Where the agent sends tool calls.")
    agent_name: str = Field(
        "beckon",
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        description="The agent's name: `model` in the API.",
    )
    agent_namespace: str = Field("default", description="The agent's namespace, part of its events' source.")
    system_prompt: str = Field(DEFAULT_SYSTEM_PROMPT, description="What every conversation begins with.")
    openai_base_url: str = Field(
        "",
        validation_alias=AliasChoices("OPENAI_BASE_URL", "openai_base_url"),
        description="The OpenAI-compatible server, such as http://localhost:11434/v1.",
    )
    openai_api_key: SecretStr = Field(
        SecretStr(""),
        validation_alias=AliasChoices("OPENAI_API_KEY", "openai_api_key"),
        description="The key for that server; it never appears in a log or an error.",
    )
    model: str = Field("", description="The model's name at that server; unset means the first one it lists.")
    dialect: str = Field(
        "auto",
        description="How the model calls tools: auto, native, or a dialect such as prompted or chatglm3.",
    )
    text_calls: TextCalls = Field(
        "own",
        description="With native tool calling, which calls are recovered that leaked into an answer's text: "
        "own for the markup of the model's own family, any for that of every family, or never.",
    )
    keys_file: str = Field(
        "",
        description="The file of API keys, a line for each as `beckon keys new` prints it: a mounted Secret.",
    )
    oidc_issuer: str = Field("", description="The OIDC issuer whose tokens are taken, as `iss` has it.")
    oidc_audience: str = Field(
        "", description="What `aud` of its tokens must be; several are separated by commas."
    )
    oidc_user_claim: str = Field("sub", min_length=1, description="The claim that names the user.")
    oidc_groups_claim: str = Field(
        "groups", description="The claim that lists the user's groups, or a path such as realm_access.roles."
    )
    oidc_jwks_url: str = Field("", description="Where the issuer's keys are; unset: as its discovery says.")
    oidc_ca_file: str = Field(
        "", description="Certificates to trust for the issuer, besides the public authorities."
    )
    anonymous: bool | None = Field(
        None,
        description="Whether callers without a key or token are admitted; unset: only from this machine, "
        "where the agent listens on loopback and neither keys nor an issuer are set.",
    )
    open_events: bool = Field(
        False,
        description="Whether events are taken at /events and /feed without a credential, since most Brokers "
        "send none.",
    )
    deny_by_default: bool = Field(
        False,
        description="Whether an Agent without users and groups admits no caller, instead of every caller.",
    )
    public_url: str = Field(
        "",
        pattern=r"^(https?://[^/?#@\s\"]+(/[^?#@\s\"]*)?)?$",
        description="The URL by which clients reach the service, for its OAuth metadata.",
    )
    max_steps: int = Field(16, ge=1, description="How many requests to the model one run may make.")
    max_seconds: float = Field(300, gt=0, description="How many seconds one run may take.")
    max_tokens: int | None = Field(
        None, ge=1, description="How many tokens one run may use in all; unset: no limit."
    )
    parallel_calls: int = Field(8, ge=1, description="How many tool calls of one turn run at the same time.")
    max_calls_per_turn: int = Field(
        64, ge=1, description="How many tool calls one answer of the model may make; more are denied."
    )
    max_repeated_calls: int = Field(
        5,
        ge=1,
        description="How often in a row the same call may fail or have the same result in one run; after "
        "that it is denied.",
    )
    max_tools: int = Field(
        64, ge=2, description="How many tools one request to the model has at most, find_tools among them."
    )
    pinned_tools: str = Field(
        "",
        description="Where there are more: the tools that every request has, by the names of EventTypes or "
        "of tools, separated by commas.",
    )
    call_timeout: float = Field(
        30, gt=0, description="Seconds a tool may take, unless its EventType says otherwise."
    )
    late_seconds: float = Field(
        86_400,
        gt=0,
        description="Seconds that a tool has which takes a call and answers it later, unless its EventType "
        "says otherwise.",
    )
    store_chats: bool = Field(
        False,
        description="Whether runs of chat completions are stored where the request does not say `store`; "
        "those of responses always are.",
    )
    mcp_agent_tool: bool = Field(
        False, description="Whether each agent is a tool, `run_agent`, for MCP clients at its address."
    )
    mcp_events: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="Experimental: how many of the events at /feed are stored for MCP clients; 0: none, and "
        "clients see no event types.",
    )
    push_hosts: HostList = Field(
        (),
        description="Hosts at which A2A clients may be notified of their tasks: names with commas between "
        "them, `*.example.com` for every name below it, or a list in YAML of `{host: …, private: true}` for "
        "one on a private network, with `http://host:port` where it is not https. None: no notifications.",
    )
    keep_days: float = Field(30, ge=0, description="Days after which ended runs are deleted; 0 for never.")
    max_result_chars: int = Field(
        20_000, ge=100, description="How much of a tool's result the model is shown."
    )
    max_request_bytes: int = Field(
        4 * 1024 * 1024, ge=1024, description="The largest request that is read, in bytes."
    )
    max_runs: int = Field(
        256, ge=1, description="How many runs may be in progress; further requests get 503."
    )

    drain_seconds: int = Field(25, ge=0, description="Seconds given to running requests after SIGTERM.")

    @field_validator("namespaces")
    @classmethod
    def _names_namespaces(cls, value: str) -> str:
        for name in split_items(value) - {ALL_NAMESPACES}:
            if not DNS_LABEL.fullmatch(name):
                raise ValueError(f"{name[:70]!r} is no namespace; write names separated by commas, or *")
        return value

    @field_validator("metrics_users")
    @classmethod
    def _names_users(cls, value: str) -> str:
        for name in split_items(value) - {"*"}:
            if not name.startswith((KEY_PREFIX, OIDC_PREFIX)):
                raise ValueError(f"{name[:70]!r} is no user; write key:NAME, oidc:SUBJECT, or * for everyone")
        return value

    @model_validator(mode="after")
    def _has_two_ports(self) -> Self:
        if self.metrics_port is not None and self.metrics_port == self.port:
            raise ValueError("BECKON_METRICS_PORT is the agent's own port; set another, or none")
        return self

    @model_validator(mode="after")
    def _serves_its_own_namespace(self) -> Self:
        watched = self.watched_namespaces()
        if watched and not watched & {self.agent_namespace, ALL_NAMESPACES}:
            raise ValueError(
                f"the namespace {self.agent_namespace!r} that BECKON_AGENT_NAMESPACE names is not among "
                "BECKON_NAMESPACES, so the agent would have no tools; add it, or name one of them"
            )
        return self

    def watched_namespaces(self) -> frozenset[str]:
        """Return the namespaces to serve; empty if folders are read. `*` among them means all namespaces."""
        return split_items(self.namespaces)

    def access_options(self) -> AccessOptions:
        """Return the options of authentication."""
        oidc = None
        if self.oidc_issuer:
            oidc = OidcOptions(
                issuer=self.oidc_issuer,
                audiences=tuple(sorted(split_items(self.oidc_audience))),
                user_claim=self.oidc_user_claim,
                groups_claim=self.oidc_groups_claim,
                jwks_url=self.oidc_jwks_url,
                ca_file=Path(self.oidc_ca_file) if self.oidc_ca_file else None,
            )
        keys = Path(self.keys_file) if self.keys_file else None
        return AccessOptions(host=self.host, keys_file=keys, oidc=oidc, anonymous=self.anonymous)

    def may_read_metrics(self) -> Callable[[Principal], bool] | None:
        """Return the permission check for the metrics at the agent's port.

        It is `None` if the metrics have a port of their own.
        """
        if self.metrics_port is not None:
            return None
        users = split_items(self.metrics_users)
        local = self.anonymous is None  # then callers without a credential are of this machine

        def may_read(caller: Principal) -> bool:
            if caller.kind == "unauthenticated":
                return False
            return "*" in users or caller.id in users or (local and caller.kind == "anonymous")

        return may_read

    def pinned_names(self) -> tuple[str, ...]:
        """Return the names of the pinned tools in their order."""
        return tuple(filter(None, (part.strip() for part in self.pinned_tools.split(","))))

    def manifest_folders(self) -> list[Path]:
        """Return the manifest folders in their order."""
        return [Path(part) for part in self.manifests.split(":") if part]


def split_items(text: str) -> frozenset[str]:
    """Return the comma-separated items of a text."""
    return frozenset(part.strip() for part in text.split(",")) - {""}
