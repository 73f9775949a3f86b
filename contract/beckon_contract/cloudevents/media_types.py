"""Media types (RFC 2045, section 5.1), and recognition of JSON types."""

import re

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = re.compile(
    rf"{_WORD}(?P<subtype>/{_WORD})?"
    rf'(?:[ \t]*;[ \t]*{_WORD}=(?:{_WORD}|"(?:[^"\\]|\\.)*"))*[ \t]*;?[ \t]*\Z'
)


def is_media_type(text: str | None, *, subtype: bool = True) -> bool:
    """Return True if a text is a media type.

    No text at all means JSON.

    Without `subtype` it needs no slash: Go's mime package, and with it Knative's ingress, takes `xyz`.
    """
    if text in (None, "application/json"):
        return True
    found = _MEDIA_TYPE.match(str(text))
    return found is not None and not (subtype and found["subtype"] is None)


def is_json(content_type: str | None) -> bool:
    """Return True if data of this type is JSON.

    An absent type means JSON (JSON format, section 3.1).
    """
    if content_type is None:
        return True
    media_type = content_type.split(";", maxsplit=1)[0].strip().lower()
    return media_type.endswith(("/json", "+json"))
