"""An answer sent in pieces while it is produced."""

from beckon_shim.messages import Piece


class Stream:
    """Puts the pieces of one answer into frames: chunks of HTTP/1.1 (RFC 9112, section 7.1).

    HTTP/1.0 has none: there, the end of the connection ends the answer.
    """

    def __init__(self, version: str, *, close: bool) -> None:
        """Begin an answer to a request of this HTTP version.

        With `close` the connection ends after this answer.
        """
        self._chunked = version == "1.1"
        self._begun = False
        self.closes = close or not self._chunked
        self.held: Piece | None = None
        """What is sent as soon as the client reads on, unless something newer comes."""

    def frame(self, piece: Piece) -> bytes:
        """Return the bytes of a piece."""
        parts = [] if self._begun else self._head(piece)
        self._begun = True
        if not self._chunked:
            parts.append(piece.body)
            return b"".join(parts)
        parts += (b"%x\r\n" % len(piece.body), piece.body, b"\r\n")
        if piece.whole is not None:
            parts.append(b"0\r\n\r\n")
        return b"".join(parts)

    def _head(self, piece: Piece) -> list[bytes]:
        parts = [b"HTTP/1.1 200 OK\r\n"]
        for name, value in piece.headers:
            parts += (name, b": ", value, b"\r\n")
        if self._chunked:
            parts.append(b"transfer-encoding: chunked\r\n")
        if self.closes:
            parts.append(b"connection: close\r\n")
        parts.append(b"\r\n")
        return parts
