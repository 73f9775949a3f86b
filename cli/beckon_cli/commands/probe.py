"""`beckon probe`: the behaviour of a Broker, tried with calls of the probe's own."""

import asyncio
import contextlib
import shlex
import signal
from collections.abc import AsyncIterator, Coroutine
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from cyclopts import App, Parameter
from rich.text import Text

from beckon_cli.errors import CommandError
from beckon_cli.output import err, out, print_json
from beckon_cli.probe.cases import ProbeOptions
from beckon_cli.probe.cluster import ClusterSubscriptions, read_broker
from beckon_cli.probe.embedded import embedded_broker
from beckon_cli.probe.report import Report, Row, Verdict, to_markdown
from beckon_cli.probe.restart import Restart
from beckon_cli.probe.subscriptions import FOLDER_SECONDS, FolderSubscriptions, read_status, status_url
from beckon_cli.probe.suite import BrokerUnderTest, new_run, probe_broker
from beckon_cli.settings import load_settings
from beckon_sources.api_client import connect
from beckon_sources.api_types import NotConfigured

probe = App(name="probe", help="Test how a Broker handles tool calls.")

_STYLES = {Verdict.GOOD: "green", Verdict.LIMITED: "yellow", Verdict.BAD: "red"}
_EMBEDDED = "embedded broker"
_DEFAULTS = ProbeOptions()


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedPlace:
    """Options for the Broker's place: a folder of manifests or a namespace, and this machine's address."""

    manifests: Annotated[
        Path | None, Parameter(help="The folder that an embedded broker follows; else BECKON_MANIFESTS.")
    ] = None
    namespace: Annotated[
        str, Parameter(help="The Broker is in a cluster, in this namespace; Triggers are made there.")
    ] = ""
    broker: Annotated[str, Parameter(help="The Broker's name; else that in the URL, or default.")] = ""
    own_address: Annotated[
        str,
        Parameter(help="The IP address at which the Broker reaches this machine; else that of the route."),
    ] = ""
    restart: Annotated[
        str, Parameter(help="A command that kills the Broker and returns once it is back; run under calls.")
    ] = ""
    label: Annotated[str, Parameter(help="The name of the Broker in the report; else its class.")] = ""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeLoad:
    """Options for deadlines and numbers of calls."""

    wait: Annotated[float, Parameter(help="The deadline of a call in seconds; else 30.")] = _DEFAULTS.wait
    slow: Annotated[float, Parameter(help="How long the slow tool works, in seconds; else 45.")] = (
        _DEFAULTS.slow
    )
    calls: Annotated[int, Parameter(help="Calls one after the other, and at once; else 20.")] = (
        _DEFAULTS.calls
    )
    retry: Annotated[int, Parameter(help="Retries of a delivery; else 5, as in Beckon's chart.")] = (
        _DEFAULTS.retry
    )


@probe.command
def broker(
    url: str = "",
    /,
    *,
    place: ProbedPlace = ProbedPlace(),
    load: ProbeLoad = ProbeLoad(),
    json: Annotated[bool, Parameter(negative=())] = False,
    markdown: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Test how a Broker handles calls: answers, errors, slow tools, load, replies without a token, a restart.

    For instance:

    ```
    beckon probe broker
    beckon probe broker http://127.0.0.1:8081/default/default
    beckon probe broker --namespace shop --broker default
    ```

    The first starts an embedded broker for the probe, the second tries that of `beckon up`, and the third
    one in the cluster of the current kube context.

    The probe makes Triggers and removes them at the end. It serves tools on a free port of this machine, so
    the Broker must reach it: for a cluster, run it in a Pod, or on a machine that the Pods reach. It takes
    about two minutes. Other Triggers of the Broker get no event of it, unless they take every event.

    Each row is good, limited (calls end as they should, but with a limit) or bad (calls fail). Exits with 1
    where a row is bad, and with 2 where the Broker cannot be tried.

    Parameters
    ----------
    url
        The Broker's ingress. With --namespace it may be left out: the Broker's status has it.
    json
        Print one JSON document instead.
    markdown
        Print a table for a document instead.
    """
    if json and markdown:
        raise CommandError("--json and --markdown are two formats; choose one", status=2)
    _check(url, place, load)
    report = asyncio.run(_until_interrupted(_probe(url, place, load)))
    if json:
        print_json(report.document())
    elif markdown:
        print(to_markdown([report]), end="")
    else:
        _print_summary(report)
    if report.verdict is Verdict.BAD:
        raise SystemExit(1)


def _check(url: str, place: ProbedPlace, load: ProbeLoad) -> None:
    """Raise `CommandError` for options that cannot be meant."""
    for name, value in asdict(load).items():
        if value < (0 if name == "retry" else 1):
            raise CommandError(f"--{name} is too small", status=2)
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname):
        example = "http://127.0.0.1:8081/default/default"
        raise CommandError(f"{url!r} is no URL of a Broker; write for instance {example}", status=2)
    if place.manifests is not None and not place.manifests.is_dir():
        raise CommandError(f"there is no folder {place.manifests}", status=2)
    if place.manifests is not None and (place.namespace or not url):
        raise CommandError("--manifests is for the URL of an embedded broker", status=2)


async def _until_interrupted(probing: Coroutine[None, None, Report]) -> Report:
    """Return the report; cancel the probe on a signal, so that it removes its Triggers."""
    task = asyncio.ensure_future(probing)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _probe(url: str, place: ProbedPlace, load: ProbeLoad) -> Report:
    run = new_run()
    options = ProbeOptions(**asdict(load), silence=load.wait, restart_wait=load.wait)
    async with _broker(url, place, run, min(load.wait, FOLDER_SECONDS)) as broker_under_test:
        err.print(Text(f"probing {broker_under_test.label} at {broker_under_test.url} …", style="dim"))
        return await probe_broker(broker_under_test, options, run, _report_row)


@contextlib.asynccontextmanager
async def _broker(url: str, place: ProbedPlace, run: str, wait: float) -> AsyncIterator[BrokerUnderTest]:
    """Yield the Broker to try: in a cluster, at a URL, or an embedded one of the probe's own.

    `wait` are the seconds within which a folder's Triggers must be ready.
    """
    restart = _command_restart(place.restart) if place.restart else None
    if place.namespace:
        async with _cluster_broker(url, place, restart) as broker:
            yield broker
    elif url:
        yield await _embedded_at(
            url,
            place,
            FolderSubscriptions(place.manifests or load_settings().manifests, url, run, wait),
            restart,
        )
    else:
        async with embedded_broker() as own:
            subscriptions = FolderSubscriptions(own.folder, own.url, run)
            label = place.label or _EMBEDDED
            yield BrokerUnderTest(own.url, label, subscriptions, restart=restart or own.restart, owned=True)


async def _embedded_at(
    url: str, place: ProbedPlace, subscriptions: FolderSubscriptions, restart: Restart | None
) -> BrokerUnderTest:
    if await read_status(status_url(url)) is None:
        message = f"no embedded broker answers at {status_url(url)}; for a cluster's, name its --namespace"
        raise CommandError(message, status=2)
    namespace, _, name = urlsplit(url).path.strip("/").partition("/")
    return BrokerUnderTest(
        url,
        place.label or _EMBEDDED,
        subscriptions,
        namespace or "default",
        place.broker or name or "default",
        place.own_address,
        restart,
    )


@contextlib.asynccontextmanager
async def _cluster_broker(
    url: str, place: ProbedPlace, restart: Restart | None
) -> AsyncIterator[BrokerUnderTest]:
    name = place.broker or urlsplit(url).path.rpartition("/")[2] or "default"
    try:
        client = await connect("beckon-probe")
    except NotConfigured as error:
        raise CommandError(str(error), status=2) from None
    async with client:
        broker_class, address = await read_broker(client, place.namespace, name)
        if not (url or address):
            raise CommandError(f"the Broker {place.namespace}/{name} has no address yet", status=2)
        yield BrokerUnderTest(
            url or address,
            place.label or broker_class or name,
            ClusterSubscriptions(client, place.namespace),
            place.namespace,
            name,
            place.own_address,
            restart,
        )


def _command_restart(command: str) -> Restart:
    async def restart() -> None:
        process = await asyncio.create_subprocess_exec(*shlex.split(command))
        if await process.wait():
            raise CommandError(f"the command of --restart ended with status {process.returncode}")

    return restart


def _report_row(row: Row) -> None:
    """Print a row to standard error as soon as it is known."""
    seconds = "" if row.seconds is None else f"  {_seconds(row.seconds)}"
    err.print(Text.assemble((f"{row.verdict:<8}", _STYLES[row.verdict]), row.title, (seconds, "dim")))


def _print_summary(report: Report) -> None:
    """Print the rows in their order, with all that was seen."""
    out.print(Text.assemble((report.label, "bold"), f" at {report.broker}"))
    for row in report.rows:
        seconds = "" if row.seconds is None else f", {_seconds(row.seconds)}"
        runs = "" if row.runs is None else f", the tool ran {_times(row.runs)}"
        letter = f", dead letter: {row.dead_letter}" if row.dead_letter else ""
        title = f"{row.title}: ".replace("`", "")
        details = f"{row.outcome}{seconds}{runs}{letter}".replace("`", "")
        out.print(Text.assemble((f"{row.verdict:<8}", _STYLES[row.verdict]), (title, "bold"), details))
    counts = {verdict: sum(row.verdict is verdict for row in report.rows) for verdict in Verdict}
    out.print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"


def _times(runs: int) -> str:
    return "once" if runs == 1 else f"{runs} times"
