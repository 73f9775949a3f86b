"""The tokens of this replica: minted for its calls, verified on every reply."""

from beckon_contract.correlation import Claim, Keyring, check_replica, mint, verify


class Tokens:
    """Mint and verify with the keys in force, which `rotate` replaces while running."""

    def __init__(self, keyring: Keyring, replica: str) -> None:
        self.replica = check_replica(replica)
        self._keyring = keyring

    @property
    def keyring(self) -> Keyring:
        """The keys in force."""
        return self._keyring

    def mint(self, call_id: bytes) -> tuple[str, str]:
        """Return a new token for a call, and the nonce in it."""
        token = mint(self._keyring, self.replica, call_id)
        return token, token.split(".", maxsplit=2)[1]

    def verify(self, value: bytes | None) -> Claim | None:
        """Return the claim of a header's value, `None` where it is no token of ours."""
        return None if value is None else verify(self._keyring, value.decode("latin-1"))

    def rotate(self, keyring: Keyring) -> None:
        """Use other keys from now on."""
        self._keyring = keyring
