"""The nginx configuration for a set of KIngress resources; pure text, no I/O."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

Resource = dict[str, Any]

PORT = 8080
HASH_PORT = 8081
SAFE = re.compile(r"[A-Za-z0-9._:/=+@-]*")

# One event must never be sent twice by the ingress: it hands every failure on.
FRAME = """\
worker_processes 1;
pid /tmp/nginx.pid;
error_log stderr warn;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  server_tokens off;
  client_body_temp_path /tmp/body;
  proxy_temp_path /tmp/proxy;
  fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi;
  scgi_temp_path /tmp/scgi;
  server_names_hash_max_size 4096;
  server_names_hash_bucket_size 256;
  map_hash_bucket_size 256;
  underscores_in_headers on;
  client_max_body_size 0;
  resolver {resolver} valid=2s ipv6=off;
  proxy_http_version 1.1;
  proxy_buffering off;
  proxy_request_buffering off;
  proxy_next_upstream off;
  proxy_read_timeout 3600s;
  proxy_send_timeout 3600s;
  server {{ listen {hash_port}; return 200 "{digest}"; }}
  server {{ listen {port} default_server; return 404 "no Knative Service has this host\\n"; }}
{servers}}}
"""


def configuration(ingresses: Iterable[Resource], resolver: str) -> tuple[str, str]:
    """The whole file, and its digest, which nginx answers on `HASH_PORT` once it has loaded the file."""
    paths = (
        (rule, path)
        for ingress in sorted(ingresses, key=lambda ingress: ingress["metadata"]["uid"])
        for rule in ingress["spec"].get("rules", ())
        for path in rule["http"]["paths"]
        # Paths with header conditions serve the routing by tag header, which this ingress has not.
        if not path.get("headers")
    )
    servers = "".join(
        line for number, (rule, path) in enumerate(paths) for line in server(number, rule, path)
    )
    digest = hashlib.sha256((resolver + servers).encode()).hexdigest()
    text = FRAME.format(resolver=resolver, hash_port=HASH_PORT, port=PORT, digest=digest, servers=servers)
    return text, digest


def server(number: int, rule: Resource, path: Resource) -> Iterator[str]:
    """The choice between revisions by their percents, and the server that proxies to the chosen one."""
    splits = path["splits"]
    choice, upstream = f"$choice_{number}", f"$upstream_{number}"
    yield f'  split_clients "$request_id" {choice} {{ {" ".join(shares(splits))} }}\n'
    yield mapping(choice, upstream, [address(split) for split in splits])
    headers = sorted({name for split in splits for name in split.get("appendHeaders", {})})
    for index, name in enumerate(headers):
        values = [quoted(split.get("appendHeaders", {}).get(name, "")) for split in splits]
        yield mapping(choice, f"$header_{number}_{index}", values)
    common = {name: quoted(value) for name, value in path.get("appendHeaders", {}).items()}
    chosen = {name: f"$header_{number}_{index}" for index, name in enumerate(headers)}
    host = quoted(path["rewriteHost"]) if path.get("rewriteHost") else "$http_host"
    sent = {"Host": host, "Connection": '""', **common, **chosen}
    yield f"  server {{\n    listen {PORT};\n    server_name {' '.join(map(quoted, rule['hosts']))};\n"
    yield f"    location {quoted(path.get('path') or '/')} {{\n"
    yield from (f"      proxy_set_header {quoted(name)} {value};\n" for name, value in sent.items())
    yield f"      proxy_pass http://{upstream};\n    }}\n  }}\n"


def upstreams(ingresses: Iterable[Resource]) -> set[str]:
    """The DNS names of all revisions that are proxied to."""
    return {
        f"{split['serviceName']}.{split['serviceNamespace']}.svc.cluster.local"
        for ingress in ingresses
        for rule in ingress["spec"].get("rules", ())
        for path in rule["http"]["paths"]
        for split in path["splits"]
    }


def shares(splits: list[Resource]) -> Iterator[str]:
    """The percents as nginx wants them: the last one takes the rest, and no one may have none."""
    taking = [
        (index, split.get("percent", 100)) for index, split in enumerate(splits) if split.get("percent", 100)
    ]
    for index, percent in taking[:-1]:
        yield f"{percent}% {index};"
    yield f"* {taking[-1][0]};"


def mapping(source: str, target: str, values: list[str]) -> str:
    """A variable that follows the choice."""
    entries = " ".join(f"{index} {value};" for index, value in enumerate(values))
    return f"  map {source} {target} {{ {entries} }}\n"


def address(split: Resource) -> str:
    """The Service of a revision by its DNS name, so that a Service made anew is found at its new address."""
    name, namespace, port = split["serviceName"], split["serviceNamespace"], split["servicePort"]
    return quoted(f"{name}.{namespace}.svc.cluster.local:{port}")


def quoted(value: object) -> str:
    """A value that cannot end its directive; anything but plain names, paths and numbers is refused."""
    text = str(value)
    if not SAFE.fullmatch(text):
        raise ValueError(f"cannot be written into an nginx configuration: {text!r}")
    return f'"{text}"'
