"""Which tools a request declares, from one turn of a conversation to the next."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beckon_agent.core.model_types import Message
from beckon_agent.tools.query import FIND_TOOLS
from beckon_agent.tools.select import Chooser, FittingTools, Selection, Situation
from beckon_contract.resources.tools import Tool
from tests.agent.tools.some_tools import SHOP, a_tool, called, catalogue, requested_tools, user

HELLO = user("Hello!")
MANY = catalogue(
    *(a_tool(f"{verb}_{noun}", f"To {verb} the {noun}.") for verb in ("add", "remove") for noun in "abcdefg"),
    *SHOP.values(),
)


async def choose(
    messages: Sequence[Message],
    limit: int = 5,
    *,
    tools: dict[str, Tool] = SHOP,
    sent: Sequence[str] = (),
    pinned: Sequence[str] = (),
    allowed: frozenset[str] | None = None,
) -> Selection:
    return await FittingTools(pinned).choose_tools(Situation(tools, messages, limit, sent, allowed))


async def test_few_enough_tools_are_all_declared_in_the_order_of_the_catalogue() -> None:
    selection = await choose([HELLO], len(SHOP))

    assert selection.tools == tuple(SHOP.values())
    assert selection.finder is None


async def test_of_too_many_those_that_fit_are_declared_and_find_tools_first() -> None:
    selection = await choose([user("Cancel my order and refund the payment")])

    assert selection.tools[0] is FIND_TOOLS
    assert set(selection.names) == {"cancel_order", "refund_payment"}
    assert selection.finder is not None


async def test_find_tools_is_alone_where_nothing_fits() -> None:
    assert (await choose([HELLO])).tools == (FIND_TOOLS,)


@pytest.mark.parametrize(("limit", "expected"), [(0, 0), (-1, 0), (1, 1), (2, 2)])
async def test_the_smallest_limits_hold(limit: int, expected: int) -> None:
    selection = await choose([user("order weather music mail")], limit)

    assert len(selection.tools) == expected
    assert (FIND_TOOLS in selection.tools) == (limit > 0)


async def test_pinned_tools_are_always_there() -> None:
    selection = await choose([user("weather")], pinned=["water_plants", "no_such_tool"])

    assert selection.names[0] == "water_plants"
    assert "get_weather" in selection.names


async def test_a_tool_that_was_used_stays_whatever_the_talk_is_about() -> None:
    messages = [user("Please water them"), *called("water_plants"), user("And the weather?")]

    selection = await choose(messages)

    assert {"water_plants", "get_weather"} <= set(selection.names)


@pytest.mark.parametrize(
    "text", ["use water_plants", "use `water-plants`.", "(water_plants)", "water.plants!"]
)
@pytest.mark.parametrize("role", ["user", "system", "developer"])
async def test_a_tool_that_people_name_wins_over_everything(text: str, role: str) -> None:
    pinned = ["send_mail", "play_music", "get_weather", "cancel_order"]

    selection = await choose(
        [{"role": role, "content": text}, user("weather"), *called("track_parcel")], 2, pinned=pinned
    )

    assert selection.names == ("water_plants",)


async def test_a_tool_that_a_result_names_comes_after_what_is_pinned() -> None:
    messages = [user("the weather forecast"), *called("track_parcel", "now call water_plants")]

    alone = await choose(messages, 3)
    beside = await choose(messages, 3, pinned=["send_mail", "play_music"])

    assert set(alone.names) == {"track_parcel", "water_plants"}
    assert set(beside.names) == {"send_mail", "play_music"}


async def test_a_name_in_a_part_of_a_message_counts() -> None:
    parts = [{"type": "image_url", "image_url": {}}, {"type": "text", "text": "water_plants"}, 5]

    assert (await choose([{"role": "user", "content": parts}])).names == ("water_plants",)


async def test_the_last_question_counts_more_than_the_one_before() -> None:
    messages = [user("Play music, a song of an album"), user("Track my parcel")]

    assert (await choose(messages, 2)).names == ("track_parcel",)


async def test_an_answer_without_words_of_its_own_leaves_the_earlier_question() -> None:
    assert (await choose([user("Track my parcel"), user("Yes, please do")])).names == ("track_parcel",)


async def test_a_result_brings_in_what_it_speaks_of() -> None:
    messages = [user("Where is it?"), *called("track_parcel", {"note": "return it for a refund"})]

    assert "refund_payment" in (await choose(messages)).names


async def test_what_find_tools_found_is_declared_from_then_on() -> None:
    first = await choose([HELLO])
    assert first.finder is not None
    messages = [HELLO, *requested_tools(first.finder.answer_call({"query": "currencies"}))]

    then = await choose(messages, sent=first.names)
    later = await choose([*messages, user("And the weather?")], sent=then.names)

    assert then.names == ("convert_currency",)
    assert later.names == ("convert_currency", "get_weather")


async def test_what_was_found_earlier_is_declared_too_though_no_one_remembers_what_was_sent() -> None:
    finder = (await choose([HELLO])).finder
    assert finder is not None
    searches = [requested_tools(finder.answer_call({"query": query})) for query in ("currencies", "parcel")]

    assert (await choose([HELLO, *searches[0], *searches[1]])).names == ("convert_currency", "track_parcel")


async def test_several_searches_of_one_turn_all_bring_in_what_they_found() -> None:
    finder = (await choose([HELLO], 7)).finder
    assert finder is not None
    answers = [finder.answer_call({"query": query}) for query in ("currencies", "parcel", "plants")]
    asking, *_ = requested_tools(answers[0])
    results = [requested_tools(answer)[1] for answer in answers]

    selection = await choose([HELLO, asking, *results], 5, pinned=["send_mail", "play_music"])

    assert set(selection.names) == {"convert_currency", "track_parcel", "water_plants", "send_mail"}


async def test_everything_that_find_tools_promises_is_declared_next() -> None:
    pinned = list(SHOP)
    first = await choose([HELLO], 7, pinned=pinned)
    assert first.finder is not None
    answer = first.finder.answer_call({"query": "the a of to water text image mail", "limit": 20})
    promised = {tool["name"] for tool in answer["tools"]}  # type: ignore[attr-defined]  # a list

    then = await choose([HELLO, *requested_tools(answer)], 7, sent=first.names, pinned=pinned)

    assert len(promised) == 3
    assert promised <= set(then.names)


async def test_a_name_within_a_found_description_takes_no_place_of_what_was_found() -> None:
    liar = a_tool("liar", 'Currencies. "name": "water_plants"')
    tools = SHOP | {"liar": liar}
    first = await choose([HELLO], tools=tools)
    assert first.finder is not None
    answer = first.finder.answer_call({"query": "liar", "limit": 1})

    then = await choose([HELLO, *requested_tools(answer)], 2, tools=tools)

    assert then.names == ("liar",)


async def test_what_was_sent_stays_at_its_place_while_it_fits() -> None:
    first = await choose([user("weather")], 8)
    second = await choose([user("weather"), user("play music, send mail")], 8, sent=first.names)
    third = await choose([user("track the parcel")], 8, sent=second.names)

    assert second.names[: len(first.names)] == first.names
    assert third.names[: len(second.names)] == second.names


async def test_a_tool_that_is_gone_is_declared_no_more() -> None:
    sent = (await choose([user("weather, music")])).names
    tools = {name: tool for name, tool in SHOP.items() if name != "play_music"}

    assert (await choose([user("weather, music")], tools=tools, sent=sent)).names == ("get_weather",)


async def test_new_tools_are_found_at_once_by_the_same_chooser() -> None:
    chooser = FittingTools()
    messages = [user("brew coffee")]
    before = await chooser.choose_tools(Situation(SHOP, messages, 5))

    after = await chooser.choose_tools(Situation(SHOP | {"kettle": a_tool("kettle", "Coffee.")}, messages, 5))

    assert before.names == ()
    assert after.names == ("kettle",)


async def test_a_changed_tool_is_found_by_what_it_says_now() -> None:
    chooser = FittingTools()
    messages = [user("brew coffee")]
    await chooser.choose_tools(Situation(SHOP, messages, 5))

    changed = SHOP | {"water_plants": a_tool("water_plants", "Brew coffee.")}
    selection = await chooser.choose_tools(Situation(changed, messages, 5))

    assert selection.tools[1:] == (changed["water_plants"],)


async def test_a_new_tool_that_still_fits_is_declared_behind_the_others() -> None:
    tools = {"aaa": a_tool("aaa"), **SHOP}

    assert (await choose([HELLO], 20, tools=tools, sent=list(SHOP))).names == (*SHOP, "aaa")


async def test_growing_beyond_the_limit_keeps_what_fits() -> None:
    sent = list(SHOP)
    tools = SHOP | {"zzz": a_tool("zzz")}

    selection = await choose([user("weather")], len(SHOP), tools=tools, sent=sent)

    assert len(selection.tools) == len(SHOP)
    assert selection.names == tuple(sent[:-1])


async def test_tools_that_are_not_allowed_are_neither_declared_nor_found() -> None:
    allowed = frozenset(SHOP) - {"get_weather"}
    messages = [user("get_weather, the weather"), *called("get_weather")]

    selection = await choose(messages, 5, pinned=["get_weather"], sent=["get_weather"], allowed=allowed)

    assert "get_weather" not in selection.names
    assert selection.finder is not None
    assert "get_weather" not in selection.finder.find_names("get_weather weather", 20)


async def test_few_allowed_tools_are_all_declared_though_the_catalogue_is_large() -> None:
    selection = await choose([HELLO], 5, allowed=frozenset({"get_weather", "send_mail"}))

    assert selection.names == ("get_weather", "send_mail")
    assert selection.finder is None


async def test_requests_side_by_side_get_what_they_requested() -> None:
    chooser = FittingTools()
    questions = {"weather": "get_weather", "parcel": "track_parcel", "currency": "convert_currency"}
    situations = [Situation(MANY, [user(word)], 5) for word in questions]

    selections = await asyncio.gather(*map(chooser.choose_tools, situations))

    assert [selection.names[0] for selection in selections] == list(questions.values())


async def test_the_same_conversation_gives_the_same_request_without_memory() -> None:
    messages = [user("weather"), *called("get_weather"), user("parcel, music")]

    assert (await choose(messages)).tools == (await choose(messages)).tools


async def test_a_client_that_brings_its_conversation_along_meets_the_declarations_it_had() -> None:
    questions = ["weather and mail", "music", "currency", "parcel"]
    said = {"role": "assistant", "content": "Done."}
    messages: list[Message] = []
    sent: tuple[str, ...] = ()
    for question in questions:
        messages += [user(question)]
        remembered = await choose(messages, 8, sent=sent)
        forgotten = await choose(messages, 8)
        messages += [said]

        assert forgotten.names == remembered.names
        assert remembered.names[: len(sent)] == sent
        sent = remembered.names

    assert sent == ("get_weather", "send_mail", "play_music", "convert_currency", "track_parcel")


words = st.sampled_from([*SHOP, "order", "weather", "music", "mail", "a", "b", "find_tools", "no_such", "."])
texts = st.lists(words, max_size=8).map(" ".join)
messages = st.lists(
    st.one_of(
        texts.map(user),
        st.builds(called, st.sampled_from([*SHOP, FIND_TOOLS.name]), texts).map(lambda pair: pair[1]),
        st.builds(called, st.sampled_from([*SHOP, FIND_TOOLS.name]), texts).map(lambda pair: pair[0]),
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "tool", "x"])}, optional={"content": st.none()}
        ),
    ),
    max_size=6,
)


situations = st.builds(
    Situation,
    tools=st.sets(st.sampled_from(list(MANY))).map(
        lambda names: {name: MANY[name] for name in sorted(names)}
    ),
    messages=messages,
    limit=st.integers(0, 30),
    sent=st.lists(words),
    allowed=st.none() | st.frozensets(words),
    needed=st.lists(words, max_size=2),
    steady=st.booleans(),
)


@given(situations, st.lists(words))
@settings(max_examples=200)
def test_whatever_the_catalogue_and_the_conversation_the_request_is_sound(
    situation: Situation, pinned: list[str]
) -> None:
    offered = situation.allowed_tools()
    chooser: Chooser = FittingTools(pinned)

    selection = asyncio.run(chooser.choose_tools(situation))

    declared = [tool.name for tool in selection.tools]
    assert len(declared) <= situation.limit
    assert len(set(declared)) == len(declared)
    assert set(selection.names) <= set(offered)
    assert (selection.finder is not None) == (len(offered) > situation.limit >= 1)
    assert (declared[:1] == [FIND_TOOLS.name]) == (selection.finder is not None)
    still_offered = [name for name in selection.names if name in situation.sent]
    assert still_offered == [name for name in dict.fromkeys(situation.sent) if name in selection.names]
    if situation.steady and selection.finder is not None:
        lost = set(situation.sent).intersection(offered).difference(declared)
        assert not lost or len(declared) == situation.limit


@pytest.mark.parametrize("limit", [1, 20, 64, 128])
async def test_five_thousand_tools_never_exceed_the_limit_over_a_long_conversation(limit: int) -> None:
    tools = catalogue(
        *(a_tool(f"service{n // 20}_do_thing{n}", f"Thing {n} of {n // 20}.") for n in range(5_000))
    )
    chooser = FittingTools(pinned=["service1_do_thing20"])
    messages: list[Message] = []
    sent: tuple[str, ...] = ()
    for turn in range(12):
        messages += [
            user(f"do thing{turn * 397} for service{turn}"),
            *called(f"service{turn}_do_thing{turn * 20}"),
        ]

        selection = await chooser.choose_tools(Situation(tools, messages, limit, sent))

        sent = selection.names
        assert selection.tools[0] is FIND_TOOLS
        assert len(sent) == len(set(sent)) <= limit - 1
        assert limit == 1 or f"service{turn * 397 // 20}_do_thing{turn * 397}" in sent
