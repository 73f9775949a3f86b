"""The tokens of this replica: minted for its calls, verified on every reply."""

from beckon_contract.correlation import Claim, Keyring, check_replica, mint, verify


class Tokens:
    """Mints and verifies tokens with the current keys.

    `rotate` replaces the keys while the shim runs.
    """

    def __init__(self, keyring: Keyring, replica: str) -> None:
        self.replica = check_replica(replica)
        self._keyring = keyring

    @property
    def keyring(self) -> Keyring:
        """The current keys."""
        return self._keyring

    def mint(self, call_id: bytes) -> tuple[str, str]:
        """Return a new token for a call, and the nonce in it."""
        token = mint(self._keyring, self.replica, call_id)
        return token, token.split(".", maxsplit=2)[1]

    def verify(self, value: bytes | None) -> Claim | None:
        """Return the claim in a header's value, `None` without a valid token."""
        return None if value is None else verify(self._keyring, value.decode("latin-1"))

    def rotate(self, keyring: Keyring) -> None:
        """Use other keys from now on."""
        self._keyring = keyring
