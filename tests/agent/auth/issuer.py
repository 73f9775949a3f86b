"""An OIDC issuer on loopback with keys of its own: discovery, a key set, and the tokens that a test wants."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from tests.serving import served

AUDIENCE = "beckon"

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@dataclass
class SigningKey:
    """A key pair with its id, and the algorithm that it signs with."""

    kid: str
    algorithm: str
    private: PrivateKey

    def public_jwk(self) -> dict[str, Any]:
        """Return the public half as a JSON Web Key."""
        public = self.private.public_key()
        match public:
            case rsa.RSAPublicKey():
                text = RSAAlgorithm.to_jwk(public)
            case ec.EllipticCurvePublicKey():
                text = ECAlgorithm.to_jwk(public)
            case ed25519.Ed25519PublicKey():
                text = OKPAlgorithm.to_jwk(public)
        return {**json.loads(text), "kid": self.kid, "alg": self.algorithm, "use": "sig"}

    def sign(self, claims: dict[str, Any], **headers: Any) -> str:
        """Return a token."""
        return jwt.encode(claims, self.private, self.algorithm, headers={"kid": self.kid, **headers})


def rsa_key(kid: str = "rsa", bits: int = 2048, algorithm: str = "RS256") -> SigningKey:
    return SigningKey(kid, algorithm, rsa.generate_private_key(public_exponent=65537, key_size=bits))


def ec_key(kid: str = "ec") -> SigningKey:
    return SigningKey(kid, "ES256", ec.generate_private_key(ec.SECP256R1()))


def ed_key(kid: str = "ed") -> SigningKey:
    return SigningKey(kid, "EdDSA", ed25519.Ed25519PrivateKey.generate())


@dataclass
class Issuer:
    """The issuer: it publishes `keys` and `more_jwks`, and `fetched` counts the requests for them."""

    url: str = ""
    keys: list[SigningKey] = field(default_factory=lambda: [ec_key()])
    more_jwks: list[dict[str, Any]] = field(default_factory=list)
    fetched: int = 0
    trouble: str = ""
    named: str = ""
    keys_at: str = ""

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return the claims of a good token; a change to `None` leaves one out."""
        now = int(time.time())
        usual = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "alice",
            "iat": now,
            "exp": now + 300,
            "groups": ["finance"],
        }
        return {name: value for name, value in (usual | changes).items() if value is not None}

    def token(self, **changes: Any) -> str:
        """Return a token of the first key."""
        return self.keys[0].sign(self.claims(**changes))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request: the ASGI application."""
        if scope["type"] == "http":
            await self._answer(Request(scope).url.path)(scope, receive, send)

    def _answer(self, path: str) -> Response:
        if path == "/.well-known/openid-configuration":
            document = {"issuer": self.named or self.url, "jwks_uri": self.keys_at or f"{self.url}/keys"}
            return Response(json.dumps(document), media_type="application/json")
        if path != "/keys":
            return PlainTextResponse("no such page", 404)
        self.fetched += 1
        match self.trouble:
            case "error":
                return PlainTextResponse("try later", 500)
            case "html":
                return PlainTextResponse("<html>")
            case "large":
                return PlainTextResponse(" " * 600_000)
            case "redirect":
                return RedirectResponse(f"{self.url}/elsewhere")
            case "no keys":
                return Response('{"keys": []}')
        key_set = {"keys": [*self.more_jwks, *(key.public_jwk() for key in self.keys)]}
        return Response(json.dumps(key_set), media_type="application/json")


@asynccontextmanager
async def issuing(*keys: SigningKey) -> AsyncIterator[Issuer]:
    """Serve an issuer with these keys, by default one of an elliptic curve."""
    issuer = Issuer()
    if keys:
        issuer.keys = list(keys)
    async with served(issuer, lifespan="off") as issuer.url:
        yield issuer
