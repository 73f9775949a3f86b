"""The demo model's server: reads its settings, serves until stopped."""

import logging.config
import sys

from pydantic import ValidationError
from pydantic_settings import CliApp, SettingsConfigDict

from beckon_demo.app import build_app
from beckon_runtime.asgi import DrainingServer, server_config
from beckon_runtime.logs import log_config
from beckon_runtime.process import CannotListen, listen, refuse_start
from beckon_runtime.settings import ServingSettings, port_field, setting_problems


class Settings(ServingSettings):
    """Everything that can be set of the demo model."""

    model_config = SettingsConfigDict(
        env_prefix="BECKON_DEMO_",
        extra="ignore",
        cli_prog_name="python -m beckon_demo",
        cli_kebab_case=True,
    )

    port: int = port_field(8090, "The port to listen on, without access control")


_CLOSING_SECONDS = 5

logger = logging.getLogger("beckon_demo")


def main() -> int:
    """Serve; return 2 for a wrong setting or a taken port."""
    try:
        settings = CliApp.run(Settings)
    except ValidationError as error:
        return refuse_start("beckon_demo", "; ".join(setting_problems("BECKON_DEMO_", error)))
    readable = sys.stderr.isatty()
    logging.config.dictConfig(log_config("demo", readable=readable, level=settings.log_level))
    try:
        listener = listen(settings.host, settings.port, "choose another --port")
    except CannotListen as error:
        return refuse_start("beckon_demo", str(error))
    host, port = listener.getsockname()[:2]
    logger.info("the demo model (a stand-in, no language model) answers at http://%s:%d/v1", host, port)
    server = DrainingServer(
        server_config(
            build_app(),
            settings.origin_policy(settings.host),
            settings.connection_limits(),
            closing_seconds=_CLOSING_SECONDS,
        )
    )
    with listener:
        server.run(sockets=[listener])
    return 0


if __name__ == "__main__":
    sys.exit(main())
