"""Start the admission webhook: `python -m beckon_operator.webhook`, set by `BECKON_WEBHOOK_*`."""

import asyncio
import logging.config
import sys

from pydantic import ValidationError

from beckon_operator.webhook.app import WebhookService
from beckon_operator.webhook.cluster import WebhookCluster
from beckon_operator.webhook.settings import SECRET, WebhookSettings
from beckon_runtime.logs import log_config
from beckon_runtime.process import CannotListen, on_stop_signal, refuse_start
from beckon_runtime.settings import setting_problems
from beckon_sources.api_client import connect
from beckon_sources.api_types import NotConfigured

_ANSWER = 10.0  # seconds of silence of the API server


def main() -> int:
    """Run until SIGTERM or SIGINT; return the exit status.

    0 is a normal stop, 2 a webhook that cannot start.
    """
    try:
        settings = WebhookSettings()
    except ValidationError as error:
        return refuse_start("beckon-webhook", "; ".join(setting_problems("BECKON_WEBHOOK_", error)))
    readable = sys.stderr.isatty()
    logging.config.dictConfig(log_config("webhook", readable=readable, level=settings.log_level))
    try:
        return asyncio.run(_run_webhook(settings))
    except (CannotListen, NotConfigured) as error:
        return refuse_start("beckon-webhook", str(error))


async def _run_webhook(settings: WebhookSettings) -> int:
    client = await connect("beckon-webhook", answer_seconds=_ANSWER)
    stop = asyncio.Event()
    on_stop_signal(stop.set)
    cluster = WebhookCluster(client, settings.namespace, SECRET, settings.configuration)
    try:
        await WebhookService(settings, cluster).run_until(stop)
    finally:
        await client.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
