"""What the demo model's process loads: no framework, and nothing of the agent's."""

from tests.agent.test_imports import NOT_FOR_ALL, loaded

# It has three routes, and checks its requests itself.
NOT_FOR_THE_DEMO_MODEL = (
    *NOT_FOR_ALL,
    "aiohttp",
    "beckon_agent",
    "fastapi",
    "httpx",
    "opentelemetry",
    "sqlalchemy",
)


def test_the_demo_model_begins_without_a_framework() -> None:
    assert loaded("beckon_demo.__main__", NOT_FOR_THE_DEMO_MODEL) == "[]"
