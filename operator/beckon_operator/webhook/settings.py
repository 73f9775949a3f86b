"""The settings of the webhook, from environment variables `BECKON_WEBHOOK_*`."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import Field, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from beckon_operator.webhook.rotation import RotationPolicy
from beckon_runtime.origins import is_address
from beckon_runtime.settings import ServingSettings, port_field

SERVICE = "beckon-webhook"
"""The Service by which the API server reaches the webhook."""

SECRET = "beckon-webhook-tls"  # noqa: S105  # a name
"""The Secret with its certificates."""

_SETTLE = timedelta(seconds=60)  # that a new authority is in the caBundle before it signs
_DAY = 86_400  # seconds
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_HOST_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")


class WebhookSettings(ServingSettings):
    """Everything that can be set; each field says what it means."""

    model_config = SettingsConfigDict(
        env_prefix="BECKON_WEBHOOK_", env_file=None, extra="ignore", frozen=True
    )

    namespace: str = Field(
        "beckon",
        validation_alias="BECKON_POD_NAMESPACE",
        pattern=rf"^{_LABEL}$",
        description="The namespace of the webhook, its Service and its Secret.",
    )
    configuration: str = Field(
        "beckon-webhook",
        min_length=1,
        description="The MutatingWebhookConfiguration whose caBundle it keeps.",
    )
    extra_names: Annotated[frozenset[str], NoDecode] = Field(
        frozenset(),
        description="DNS names and IP addresses, separated by commas, that its certificate is for besides "
        "those of the Service.",
    )
    port: int = port_field(8443, "The port for reviews (HTTPS)")
    health_port: int = Field(
        8080, ge=0, le=65535, description="The port for health and metrics (HTTP); 0 chooses a free one."
    )
    certificate_days: float = Field(
        90.0, gt=0, le=36_500, description="How long its certificate lives; it is renewed after two thirds."
    )
    authority_days: float = Field(
        1825.0,
        gt=0,
        le=36_500,
        description="How long the authority lives that signs it; it is replaced after two thirds.",
    )
    poll_seconds: float = Field(
        10.0, gt=0, description="How often the Secret and the caBundle are read and repaired."
    )
    drain_seconds: float = Field(
        5.0,
        ge=0,
        validation_alias="BECKON_DRAIN_SECONDS",
        description="Seconds for which reviews are still answered after SIGTERM.",
    )

    def rotation_policy(self) -> RotationPolicy:
        """Return the names and lifetimes of the certificates."""
        host = f"{SERVICE}.{self.namespace}.svc"
        return RotationPolicy(
            names=frozenset({host, f"{host}.cluster.local", *self.extra_names}),
            serving_lifetime=timedelta(days=self.certificate_days),
            authority_lifetime=timedelta(days=self.authority_days),
            settle=min(_SETTLE, timedelta(days=self.authority_days) / 9),
        )

    @field_validator("extra_names", mode="before")
    @classmethod
    def _split_names(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        names = frozenset(name.strip() for name in value.split(",") if name.strip())
        for name in names:
            if not is_address(name) and not (len(name) <= 253 and _HOST_NAME.fullmatch(name)):
                raise ValueError(f"{name[:60]!r} is neither a DNS name nor an IP address")
        return names

    @model_validator(mode="after")
    def _check_lifetimes(self) -> "WebhookSettings":
        # What an authority signs last must end before the authority does, in its last third.
        if self.certificate_days * 3 > self.authority_days:
            raise ValueError("certificate_days must be at most a third of authority_days")
        if self.poll_seconds * 9 > self.certificate_days * _DAY:
            raise ValueError("certificate_days must be at least nine times poll_seconds")
        return self
