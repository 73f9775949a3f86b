"""The errors of authentication. Messages name cause and cure, and hold nothing of a credential."""


class NotLetIn(Exception):
    """The request does not say who sends it, or does not prove it; `tried` whether it held a credential."""

    def __init__(self, message: str, *, tried: bool) -> None:
        super().__init__(message)
        self.tried = tried


class BadToken(Exception):
    """A token proves nothing."""


class KeysUnavailable(Exception):
    """The issuer's keys are not known, so nobody can tell a good token now; it may be otherwise soon."""
