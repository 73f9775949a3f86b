"""The responses face, by which runs come to be, with the faces that tell of them beside it."""

from tests.agent.responses.conftest import start_face

__all__ = ["start_face"]
