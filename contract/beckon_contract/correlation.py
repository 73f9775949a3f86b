"""Correlation tokens of calls, and the credentials of their senders.

A token is the signed name of the waiting replica, and cannot be forged without a key. Its form is
`<replica>.<nonce>.<mac>`: a DNS label, 16 characters of base64url, and 22 of a truncated HMAC-SHA256
(RFC 2104, section 5) over the text before it. The first half of the nonce is random, the second
an HMAC over it and the id of the call. So a holder of the keys can check whether a token belongs to a call,
and a tool that was called once cannot answer for another call. A token travels as the value of a
CloudEvents attribute, so it is plain ASCII without spaces, quotes, percent signs or colons. A tool copies
it as it is; only shims and agents read it.

A call credential is made by the agent, and proves to the shim that the agent has the shim's key.

The header is `authorization: Beckon <seconds>.<mac>`: when the request was signed, in seconds since 1970,
and an HMAC-SHA256 in base64url over that time, the path, the CloudEvents headers, the content type and the
body. So a credential serves one event for one Broker, for `MAX_AGE` seconds. Other parts of a request
(deadline, trace) are not signed, since proxies may write them.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

MAX_TOKEN = 103
_RANDOM_BYTES = 6
_PROOF_BYTES = 6
_MAC_BYTES = 16
_SHORTEST_KEY = 16
_CONTEXT = b"beckon correlation 1\n"
_CALL_CONTEXT = b"beckon call 1\n"
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_REPLICA = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
_TOKEN = re.compile(r"([a-z0-9-]{1,63})\.([A-Za-z0-9_-]{16})\.([A-Za-z0-9_-]{22})\Z", re.ASCII)
_INSIDE = re.compile(r"[a-z0-9-]{1,63}\.[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])", re.ASCII)
_MOST_KEYS = 8
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+\Z")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]+|[A-Za-z0-9_-]+)={0,2}\Z")


@dataclass(frozen=True, slots=True)
class SigningKey:
    """One secret of at least 16 bytes for signing tokens, never shown."""

    secret: bytes = field(repr=False)
    _keyed: hmac.HMAC = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.secret) < _SHORTEST_KEY:
            raise ValueError(
                f"a key needs at least {_SHORTEST_KEY} bytes; make one with: openssl rand -hex 32"
            )
        object.__setattr__(self, "_keyed", hmac.new(self.secret, digestmod="sha256"))

    def mac(self, message: bytes) -> bytes:
        """Return the HMAC-SHA256 of a message. A copy of the keyed object costs less than a new one."""
        keyed = self._keyed.copy()
        keyed.update(message)
        return keyed.digest()

    @classmethod
    def parse(cls, text: str) -> "SigningKey":
        """Read a key written in hexadecimal or Base64 (either alphabet).

        Raises `ValueError`; its message never holds the key.
        """
        text = text.strip()
        if _HEX.match(text):
            return cls(bytes.fromhex(text))
        if not _BASE64.match(text) or len(text.rstrip("=")) % 4 == 1:
            raise ValueError("a key is neither hexadecimal nor Base64; make one with: openssl rand -hex 32")
        plain = text.rstrip("=").replace("-", "+").replace("_", "/")
        return cls(base64.b64decode(plain + "=" * (-len(plain) % 4)))

    @classmethod
    def random(cls) -> "SigningKey":
        """Return a fresh key, good for as long as this process lives."""
        return cls(secrets.token_bytes(32))


@dataclass(frozen=True, slots=True)
class Keyring:
    """The keys in force: the first signs, every one verifies.

    To rotate, put the new key second everywhere, then first everywhere, then drop the old one.
    """

    keys: Sequence[SigningKey]

    def __post_init__(self) -> None:
        if not self.keys:
            raise ValueError("a keyring needs at least one key")

    @classmethod
    def parse(cls, text: str) -> "Keyring":
        """Read keys separated by commas or lines. Raises `ValueError`; its message never holds a key."""
        keys = [SigningKey.parse(part) for part in re.split(r"[,\s]+", text) if part]
        if len(keys) > _MOST_KEYS:
            raise ValueError(f"there are {len(keys)} keys; at most {_MOST_KEYS} may be in force")
        return cls(keys)


@dataclass(frozen=True, slots=True)
class Claim:
    """The content of a genuine token.

    `replica` is the replica that waits, and `nonce` belongs to the call it waits for.
    """

    replica: str
    nonce: str


def check_replica(replica: str) -> str:
    """Return a replica name, checked for use in a token. Raises `ValueError` if a token cannot carry it."""
    if not _REPLICA.match(replica):
        raise ValueError(
            f"the replica name {replica!r} is not a DNS label; use at most 63 of a-z, 0-9 and '-'"
        )
    return replica


def pod_replica(ip: str) -> str:
    """Return the name of the replica in a Pod.

    It is a DNS label like `10-244-0-17`. Raises `ValueError` if the text is no IP.
    """
    return ip_address(ip).exploded.replace(".", "-").replace(":", "-")


def mint(keyring: Keyring, replica: str, call_id: bytes = b"") -> str:
    """Return a new token of this replica for a call, signed with the first key.

    `replica` must have passed `check_replica`. The nonce is the text between the dots.
    """
    random = secrets.token_bytes(_RANDOM_BYTES)
    nonce = _encode(random + _proof(keyring.keys[0], random, call_id))
    return sign_claim(keyring, Claim(replica, nonce))


def sign_claim(keyring: Keyring, claim: Claim) -> str:
    """Return the token with a claim, signed with the first key."""
    text = f"{claim.replica}.{claim.nonce}"
    return f"{text}.{_sign(keyring.keys[0], text)}"


def verify(keyring: Keyring, token: str) -> Claim | None:
    """Return the claim of a genuine token, or `None`.

    A token is genuine if a key of the ring signed it. Never raises.
    """
    parts = _TOKEN.match(token)
    if parts is None:
        return None
    replica, nonce, mac = parts.groups()
    text = f"{replica}.{nonce}"
    # The text is compared, not the bytes: the last character of 16 bytes in base64url has
    # spare bits, and a token must have one spelling only.
    genuine = False
    for key in keyring.keys:
        genuine |= hmac.compare_digest(_sign(key, text), mac)
    return Claim(replica, nonce) if genuine else None


def looks_like_token(value: object) -> bool:
    """Return True if a value has the shape of a token, genuine or not."""
    return isinstance(value, str) and _TOKEN.match(value) is not None


def hide_tokens(value: object, mark: str) -> object:
    """Return a JSON value with a mark for every token. Tokens in texts are replaced, genuine or not."""
    if isinstance(value, str):
        return _INSIDE.sub(mark, value)
    if isinstance(value, Mapping):
        return {name: hide_tokens(member, mark) for name, member in value.items()}
    return [hide_tokens(item, mark) for item in value] if isinstance(value, list | tuple) else value


def is_of_call(keyring: Keyring, claim: Claim, call_id: bytes) -> bool:
    """Return True if this claim's token was minted for the call."""
    nonce = base64.urlsafe_b64decode(claim.nonce)
    random, proof = nonce[:_RANDOM_BYTES], nonce[_RANDOM_BYTES:]
    genuine = False
    for key in keyring.keys:
        genuine |= hmac.compare_digest(_proof(key, random, call_id), proof)
    return genuine


def _proof(key: SigningKey, random: bytes, call_id: bytes) -> bytes:
    return key.mac(_CALL_CONTEXT + random + call_id)[:_PROOF_BYTES]


def _sign(key: SigningKey, named: str) -> str:
    return _encode(key.mac(_CONTEXT + named.encode("ascii"))[:_MAC_BYTES])


def _encode(data: bytes) -> str:
    """Return unpadded base64url."""
    return binascii.b2a_base64(data, newline=False).translate(_URL_SAFE).rstrip(b"=").decode("ascii")


SCHEME = "Beckon"
MAX_AGE = 60
"""Seconds for which a credential is good, and by which the clocks of caller and shim may differ."""

# Apart from those of `correlation`: no token of a call is a credential, and no credential a token.
_CREDENTIAL_CONTEXT = b"beckon authorization 1\n"
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
    return f"{SCHEME} {issued.decode()}.{_mac(keyring.keys[0], digest)}"


def check_request(keyring: Keyring, path: str, headers: Iterable[RawHeader], body: bytes, now: float) -> None:
    """Check the credential among the headers of a request; raise `BadCredential`.

    Names of headers are lower case. Only a genuine credential is refused for its age.
    """
    headers = list(headers)
    credentials = [value for name, value in headers if name == b"authorization"]
    if not credentials:
        raise BadCredential(f"the call has no credential in the header Authorization; {_CURE}")
    parts = _CREDENTIAL.match(credentials[0]) if len(credentials) == 1 else None
    if parts is None:
        raise BadCredential(f"the credential of the call is not of the form `{SCHEME} TIME.MAC`; {_CURE}")
    issued, mac = parts[1], parts[2].decode("ascii")
    digest = _digest(issued, path, headers, body)
    genuine = False
    for key in keyring.keys:
        genuine |= hmac.compare_digest(_mac(key, digest), mac)
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
    signed = sorted([header for header in headers if header[0][:3] == b"ce-" or header[0] == b"content-type"])
    lines = [issued, path.encode("utf-8"), *map(b":".join, signed), b"", body]
    return hashlib.sha256(b"\n".join(lines)).digest()


def _mac(key: SigningKey, digest: bytes) -> str:
    return _encode(key.mac(_CREDENTIAL_CONTEXT + digest))
