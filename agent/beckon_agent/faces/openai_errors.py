"""Errors in the shape that OpenAI clients understand."""

from starlette.responses import JSONResponse

from beckon_agent.model.errors import ModelError


class FaceError(Exception):
    """An answer of this face: its status, OpenAI's `type` and `code`, and what to do about it."""

    def __init__(self, status: int, message: str, *, code: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param

    def document(self) -> dict[str, object]:
        """Return OpenAI's error object."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> JSONResponse:
        """Return the whole HTTP answer."""
        headers = {"retry-after": "1"} if self.status in (429, 503) else None
        return JSONResponse(self.document(), self.status, headers=headers)


def from_model(error: ModelError) -> FaceError:
    """Tell a failure of the model server: it is upstream of this service, hence 502."""
    return FaceError(502, f"the model server failed: {error}", code="model_error")


def too_busy() -> FaceError:
    """Tell that every run slot is taken."""
    return FaceError(503, "the agent has as many runs under way as it may have; try again", code="overloaded")
