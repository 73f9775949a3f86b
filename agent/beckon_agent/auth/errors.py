"""The errors of authentication. Messages name cause and cure, and hold nothing of a credential."""


class NotLetIn(Exception):
    """A request without a credential, or with an invalid one.

    `tried` is True if it held a credential.
    """

    def __init__(self, message: str, *, tried: bool) -> None:
        super().__init__(message)
        self.tried = tried


class BadToken(Exception):
    """A token is not valid."""


class KeysUnavailable(Exception):
    """The issuer's keys cannot be fetched at the moment.

    No token can be verified until they are.
    """
