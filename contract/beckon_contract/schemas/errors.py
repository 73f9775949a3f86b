"""The error for refused parameters."""

from beckon_contract.schemas.keywords import Path, pointer


class SchemaError(ValueError):
    """Unusable parameters: the reason, the place and the correction.

    `reason` is in CamelCase, `path` is a JSON Pointer, `message` says what to write instead.

    `reason` is one of NotJson, NotAnObject, NotASchema, RootNotObject, MisplacedParameters, UnknownType,
    UnsupportedDialect, UnsupportedKeyword, RemoteReference, UnresolvableReference, UnboundedRecursion,
    TooLarge, TooDeep, TooManyProperties, InvalidSchema.
    """

    def __init__(self, reason: str, path: str, message: str) -> None:
        super().__init__(f"{path or 'the parameters'}: {message}")
        self.reason = reason
        self.path = path
        self.message = message


def refuse(reason: str, path: Path, message: str) -> SchemaError:
    """Return the error for a place in the document."""
    return SchemaError(reason, pointer(path), message)
