"""The one-line report of a wrong setting, by its environment variable."""

from collections.abc import Sequence


def setting_problem(prefix: str, location: Sequence[int | str], message: str) -> str:
    """Return the line for one of pydantic's errors.

    `prefix` is that of the service, such as `BECKON_`.
    """
    message = message.removeprefix("Value error, ")
    return f"{setting_name(prefix, str(location[0]))}: {message}" if location else message


def setting_name(prefix: str, reported: str) -> str:
    """Return the environment variable of a field.

    pydantic reports the field by its alias, in capitals, or by its own name.
    """
    if reported.isupper() or reported.startswith("openai_"):
        return reported.upper()
    return f"{prefix}{reported}".upper()
