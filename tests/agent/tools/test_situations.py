"""What else a choice depends on: who may use what, what must be there, what is remembered."""

from dataclasses import replace

from beckon_agent.core.model_types import Message
from beckon_agent.tools.select import AllowedToolsChooser, FittingTools, Situation
from tests.agent.tools.some_tools import SHOP, called, user
from tests.agent.tools.test_choosing import choose


async def test_pinned_tools_are_named_as_people_know_them() -> None:
    tools = SHOP | {"water_plants": replace(SHOP["water_plants"], event_type="garden.water")}

    names = (await choose([user("weather")], tools=tools, pinned=["garden.water", "send_mail"])).names

    assert names[:2] == ("water_plants", "send_mail")


async def test_what_must_be_there_comes_before_everything_else() -> None:
    situation = Situation(SHOP, [user("get_weather")], 3, needed=["water_plants", "no_such_tool"])

    assert (await FittingTools(["send_mail"]).choose_tools(situation)).names == (
        "water_plants",
        "get_weather",
    )


async def test_in_the_middle_of_a_task_results_bring_in_tools_and_drive_none_away() -> None:
    sent = ["play_music", "convert_currency"]
    messages = [user("Where is it?"), *called("track_parcel", {"note": "return it for a refund"})]

    for limit, expected in ((4, [*sent, "track_parcel"]), (5, [*sent, "track_parcel", "refund_payment"])):
        situation = Situation(SHOP, messages, limit, sent, steady=True)
        assert list((await FittingTools().choose_tools(situation)).names) == expected


async def test_what_is_remembered_of_earlier_turns_changes_no_choice() -> None:
    chooser = FittingTools()
    messages: list[Message] = []
    for question in ("weather and mail", "music", "currency", "parcel"):
        messages += [user(question)]

        selection = await chooser.choose_tools(Situation(SHOP, messages, 8))
        assert selection.tools == (await choose(messages, 8)).tools

        messages += [*called("get_weather"), {"role": "assistant", "content": "Done."}]
    few = frozenset(SHOP) - {"get_weather"}
    with_few = await chooser.choose_tools(Situation(SHOP, messages, 5, allowed=few))
    assert with_few.names == (await choose(messages, 5, allowed=few)).names


async def test_who_may_use_a_part_chooses_with_the_index_of_the_whole() -> None:
    whole = FittingTools(["send_mail"])
    parts = [{name: SHOP[name] for name in SHOP if name[0] in letters} for letters in ("cgs", "crst")]

    for part in parts:
        changed = {name: replace(tool, requires_approval=True) for name, tool in part.items()}
        chooser = AllowedToolsChooser(whole, lambda: SHOP)
        selection = await chooser.choose_tools(Situation(changed, [user("refund the weather")], 3))

        assert selection.names[0] == "send_mail"
        assert selection.names[1] == ("get_weather" if "get_weather" in part else "refund_payment")
        assert all(tool is changed[tool.name] for tool in selection.tools[1:])
        assert selection.finder is not None
        assert set(selection.finder.find_names("weather parcel refund order", 20)) <= set(part)
