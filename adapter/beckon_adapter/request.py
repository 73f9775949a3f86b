"""The HTTP request for a rule and the arguments of a call."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

from beckon_adapter.bodies import body_of
from beckon_adapter.headers import in_header
from beckon_adapter.parameters import Pair, pairs
from beckon_adapter.rule import Encoding, HttpRule, Parameter
from beckon_adapter.targets import parse_target
from beckon_adapter.templates import Arguments, UnfitArgument, parse_template, plain

MAX_URL = 8192  # characters; more than most servers take
_COOKIE_SAFE = "!#$&'()*+-./:<=>?@[]^_`{|}~"  # RFC 6265, 4.1.1
_DEFAULT = Encoding()


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request, without the credentials of the adapter's owner."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)


def build_request(rule: HttpRule, arguments: Arguments) -> HttpRequest:
    """Return the request for a call; raise `UnfitArgument`.

    The error is for arguments that do not fit their places in the rule. No argument changes the scheme,
    the host, the port, the method, or the number of path segments.
    """
    url = parse_target(rule.url).url(arguments)
    if query := "&".join(f"{name}={value}" for name, value in _query(rule, arguments)):
        url += ("&" if "?" in url else "?") + query
    if len(url) > MAX_URL:
        raise UnfitArgument(f"the arguments make an address of {len(url)} characters; {MAX_URL} are allowed")
    headers = list(_headers(rule, arguments))
    body = body_of(rule, arguments)
    if body is None:
        return HttpRequest(rule.method, url, tuple(headers))
    return HttpRequest(rule.method, url, (*headers, ("content-type", body[0])), body[1])


def _query(rule: HttpRule, arguments: Arguments) -> Iterator[Pair]:
    for name, parameter in rule.query.items():
        encoding = parameter if isinstance(parameter, Parameter) else _DEFAULT
        text = parameter.value if isinstance(parameter, Parameter) else plain(name, parameter)
        template = parse_template(text)
        only = template.only
        value = template.fill(arguments, plain) if only is None else arguments.get(only)
        yield from pairs(name, value, encoding, rule.query.keys() - {name})


def _headers(rule: HttpRule, arguments: Arguments) -> Iterator[tuple[str, str]]:
    for name, text in rule.headers.items():
        value = parse_template(plain(name, text)).fill(arguments, in_header)
        if value is not None:
            yield name.lower(), value.strip()
    cookies = [
        f"{name}={value}"
        for name, text in rule.cookies.items()
        if (value := parse_template(plain(name, text)).fill(arguments, plain)) is not None
    ]
    if cookies:
        yield "cookie", "; ".join(_in_cookie(cookie) for cookie in cookies)


def _in_cookie(cookie: str) -> str:
    name, _, value = cookie.partition("=")
    return f"{name}={quote(value, safe=_COOKIE_SAFE)}"
