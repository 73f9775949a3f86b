"""An agent with one function as its tool; its model gets a request only with a question."""

from google.adk.agents import Agent


def get_weather(city: str) -> dict[str, str]:
    """Return the current weather of a city."""
    return {"city": city, "weather": "sunny"}


root_agent = Agent(
    name="weather", model="gemini-2.5-flash", instruction="Answer with the tool.", tools=[get_weather]
)
