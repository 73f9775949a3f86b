"""Push notification configs of A2A as push targets of runs."""

from dataclasses import dataclass

from a2a.types.a2a_pb2 import (
    AuthenticationInfo,
    ListTaskPushNotificationConfigsResponse,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import InvalidParamsError, PushNotificationNotSupportedError, TaskNotFoundError

from beckon_agent.api.a2a.push import HOSTS_SETTING, InvalidTarget, check_target
from beckon_agent.store.base import Store
from beckon_agent.store.outgoing import MOST_TARGETS, PushTarget
from beckon_runtime.egress import AllowedHosts

_LONGEST = {"id": 300, "token": 4_000}
_LONGEST_CREDENTIALS = 8_000
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class TargetOperations:
    """The operations for the addresses of a task that its caller may see.

    Without `allowed` hosts all are refused.
    """

    store: Store
    allowed: AllowedHosts | None

    def read_target(self, run_id: str, config: TaskPushNotificationConfig) -> PushTarget:
        """Return the target of a config; raise the protocol's error for one that cannot be used.

        A config without an id has that of its task.
        """
        allowed = self._require_hosts()
        authentication = config.authentication
        for name, most in _LONGEST.items():
            if len(getattr(config, name)) > most:
                raise InvalidParamsError(f"{name}: at most {most} characters")
        secrets = (config.token, authentication.scheme, authentication.credentials)
        if len(authentication.credentials) > _LONGEST_CREDENTIALS or not "".join(secrets).isprintable():
            raise InvalidParamsError("token, authentication: write short texts without control characters")
        try:
            check_target(config.url, allowed)
        except InvalidTarget as error:
            raise InvalidParamsError(str(error)) from None
        return PushTarget(config.id or run_id, config.url, *secrets)

    async def put_target(self, run_id: str, config: TaskPushNotificationConfig) -> TaskPushNotificationConfig:
        """Store the target of a config, and return the config as it is stored."""
        target = self.read_target(run_id, config)
        if not await self.store.push.put(run_id, target):
            message = f"the task has {MOST_TARGETS} push notification configs; delete one of them"
            raise InvalidParamsError(message)
        return _to_config(run_id, target)

    async def find_target(self, run_id: str, config_id: str) -> TaskPushNotificationConfig:
        """Return a config by its id."""
        self._require_hosts()
        for target in await self.store.push.list_of(run_id):
            if target.id == config_id:
                return _to_config(run_id, target)
        raise TaskNotFoundError(
            f"the task has no push notification config {config_id[:_SHOWN]!r}; list them, or create it"
        )

    async def list_targets(self, run_id: str) -> ListTaskPushNotificationConfigsResponse:
        """Return all configs of a task; there are few, so they are one page."""
        self._require_hosts()
        configs = [_to_config(run_id, target) for target in await self.store.push.list_of(run_id)]
        return ListTaskPushNotificationConfigsResponse(configs=configs)

    async def delete_target(self, run_id: str, config_id: str) -> None:
        """Delete a config."""
        self._require_hosts()
        await self.store.push.delete(run_id, config_id)

    def _require_hosts(self) -> AllowedHosts:
        if self.allowed is None:
            raise PushNotificationNotSupportedError(
                "there are no push notifications here: subscribe to the task, or read it with GetTask; "
                f"the owner of the service can allow them ({HOSTS_SETTING})"
            )
        return self.allowed


def _to_config(run_id: str, target: PushTarget) -> TaskPushNotificationConfig:
    config = TaskPushNotificationConfig(id=target.id, task_id=run_id, url=target.url, token=target.token)
    if target.scheme:
        config.authentication.CopyFrom(
            AuthenticationInfo(scheme=target.scheme, credentials=target.credentials)
        )
    return config
