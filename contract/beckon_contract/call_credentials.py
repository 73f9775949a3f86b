"""Credentials of calls, made by agents for the shim.

A credential proves to the shim that the agent has the shim's key.

The header is `authorization: Beckon <seconds>.<mac>`: when the request was signed, in seconds since 1970,
and an HMAC-SHA256 in base64url over that time, the path, the CloudEvents headers, the content type and the
body. So a credential serves one event for one Broker, for `MAX_AGE` seconds. Other parts of a request
(deadline, trace) are not signed, since proxies may write them.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable

from beckon_contract.correlation import Keyring

SCHEME = "Beckon"
MAX_AGE = 60
"""Seconds for which a credential is good, and by which the clocks of caller and shim may differ."""

# Apart from those of `correlation`: no token of a call is a credential, and no credential a token.
_CONTEXT = b"beckon authorization 1\n"
_CREDENTIAL = re.compile(rb"Beckon ([0-9]{1,12})\.([A-Za-z0-9_-]{43})\Z", re.IGNORECASE)
_CURE = (
    "give the caller the shim's keys (BECKON_SHIM_KEYS_FILE or BECKON_SHIM_KEYS); "
    "docs/access.md says how a request is signed"
)

RawHeader = tuple[bytes, bytes]


class BadCredential(Exception):
    """A missing or invalid credential; the text explains cause and correction."""


def sign_request(keyring: Keyring, path: str, headers: Iterable[RawHeader], body: bytes, now: float) -> str:
    """Return the value of the `authorization` header, made with the first key.

    `path` is `/NAMESPACE/BROKER`, `now` in seconds since 1970; headers that are not signed are ignored.
    """
    issued = b"%d" % now
    digest = _digest(issued, path, headers, body)
    return f"{SCHEME} {issued.decode()}.{_mac(keyring.keys[0].secret, digest).decode()}"


def check_request(keyring: Keyring, path: str, headers: Iterable[RawHeader], body: bytes, now: float) -> None:
    """Check the credential among the headers of a request; raise `BadCredential`.

    Names of headers are lower case. Only a genuine credential is refused for its age.
    """
    headers = list(headers)
    given = [value for name, value in headers if name == b"authorization"]
    if not given:
        raise BadCredential(f"the call has no credential in the header Authorization; {_CURE}")
    parts = _CREDENTIAL.match(given[0]) if len(given) == 1 else None
    if parts is None:
        raise BadCredential(f"the credential of the call is not of the form `{SCHEME} TIME.MAC`; {_CURE}")
    issued, mac = parts.groups()
    digest = _digest(issued, path, headers, body)
    genuine = False
    for key in keyring.keys:
        genuine |= hmac.compare_digest(_mac(key.secret, digest), mac)
    if not genuine:
        raise BadCredential(f"no key of the shim made the credential of this very call; {_CURE}")
    age = int(now) - int(issued)
    if abs(age) > MAX_AGE:
        when = f"{age} s ago" if age > 0 else f"{-age} s from now"
        raise BadCredential(
            f"the credential of the call was made {when}, and is good for {MAX_AGE} s; "
            "sign each request when it is sent, and set the clocks of caller and shim"
        )


def _digest(issued: bytes, path: str, headers: Iterable[RawHeader], body: bytes) -> bytes:
    """Hash the signed parts of a request.

    They are one line each for time, path and header, an empty line, and the body.
    """
    signed = sorted((name, value) for name, value in headers if name[:3] == b"ce-" or name == b"content-type")
    lines = [issued, path.encode("utf-8"), *(b"%b:%b" % header for header in signed), b"", body]
    return hashlib.sha256(b"\n".join(lines)).digest()


def _mac(secret: bytes, digest: bytes) -> bytes:
    return base64.urlsafe_b64encode(hmac.digest(secret, _CONTEXT + digest, "sha256")).rstrip(b"=")
