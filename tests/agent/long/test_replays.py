"""Runs that waited for tools that take hours are replayed as they were, and wait for no one."""

from tests.agent.long.rig import LongAgent, Rig
from tests.agent.scripted_model import asks_for, says

REPORT = asks_for(("report", {}))
TWO = asks_for(("report", {}), ("report", {}))


async def same(agent: LongAgent, run: str) -> bool:
    """Whether a replay differs in nothing."""
    answer = await agent.http.post(f"/runs/{run}/replay", json={})
    return answer.status_code == 200 and '"same": true' in answer.text


async def test_an_answer_that_came_later_comes_later_again(rig: Rig) -> None:
    async with rig.agent(REPORT, says("It says 42.")) as agent:
        run = (await agent.post())["id"]
        await rig.tool.answer(await rig.tool.called(), {"pages": 42})
        await agent.until(run, "completed")
        log = [document["type"] for _, document in await agent.store.events.read_after(run, 0, most=100)]

        assert await same(agent, run)
        assert log.count("RunSuspended") == 1
        assert len(rig.tool.calls) == 1


async def test_an_answer_that_never_came_in_time_does_not_come_again(rig: Rig) -> None:
    async with rig.agent(asks_for(("hurried", {})), says("A pity.")) as agent:
        run = (await agent.post())["id"]
        await agent.until(run, "completed")

        assert await same(agent, run)


async def test_several_answers_that_came_later_are_reported_in_their_order(rig: Rig) -> None:
    async with rig.agent(TWO, says("Both.")) as agent:
        run = (await agent.post())["id"]
        await rig.tool.called(2)
        for number, call in enumerate(rig.tool.calls):
            await rig.tool.answer(call, number)
        await agent.until(run, "completed")

        assert await same(agent, run)


async def test_a_run_that_was_cancelled_while_it_waited_is_the_same_as_far_as_it_went(rig: Rig) -> None:
    async with rig.agent(REPORT) as agent:
        run = (await agent.post())["id"]
        await agent.waits(run)
        await agent.http.post(f"/v1/responses/{run}/cancel")

        assert await same(agent, run)


async def test_a_run_in_which_a_person_filled_in_forms_is_the_same(rig: Rig) -> None:
    answers = {"size": {"size": 7}, "really": {"really": True}}
    async with rig.agent(asks_for(("order", {"name": "hat"})), says("Done.")) as agent:
        run = (await agent.post(background=True))["id"]
        for name, content in answers.items():
            (form,) = await agent.waiting_forms(name)
            body = {"action": "accept", "content": content}
            await agent.http.post(f"/inputs/{form['id']}", json=body)
        await agent.until(run, "completed")

        assert await same(agent, run)


async def test_a_run_that_went_on_in_another_process_is_the_same(rig: Rig) -> None:
    async with rig.agent(REPORT) as agent:
        run = (await agent.post())["id"]
        call = await rig.tool.called()
        await agent.waits(run)
    async with rig.agent(says("It says 42.")) as agent:
        await rig.tool.answer(call, 42)
        await agent.until(run, "completed")

        assert await same(agent, run)
