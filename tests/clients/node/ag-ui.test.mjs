// The `@ag-ui/client` package of Node against an agent with the demo model: AGENT_URL is the agent's address.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HttpAgent } from "@ag-ui/client";

const url = `${process.env.AGENT_URL}/ag-ui`;
const locate = {
    name: "locate_user",
    description: "Locate the user: the city where the user is.",
    parameters: { type: "object", properties: {} },
};

function say(agent, content) {
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
}

test("a run makes the messages of a call, its result and the answer", async () => {
    const agent = new HttpAgent({ url });
    const kinds = new Set();
    say(agent, "What is 17% of 2340?");
    const { newMessages } = await agent.runAgent({}, { onEvent: ({ event }) => void kinds.add(event.type) });
    assert.deepEqual(
        newMessages.map((message) => message.role),
        ["assistant", "tool", "assistant"],
    );
    assert.equal(newMessages[0].toolCalls[0].function.name, "calculator");
    assert.match(newMessages[1].content, /397\.8/);
    assert.match(newMessages[2].content, /397\.8/);
    for (const kind of ["RUN_STARTED", "TOOL_CALL_RESULT", "TEXT_MESSAGE_CONTENT", "RUN_FINISHED"]) {
        assert.ok(kinds.has(kind), kind);
    }
});

test("the conversation goes on with the messages of the client", async () => {
    const agent = new HttpAgent({ url });
    say(agent, "What is 2 + 3?");
    await agent.runAgent();
    say(agent, "What is 4 + 5?");
    const { newMessages } = await agent.runAgent();
    assert.match(newMessages.at(-1).content, /9/);
});

test("a tool of the client is pending at the end of the run, and answered in the next", async () => {
    const agent = new HttpAgent({ url });
    say(agent, "Locate the user: in which city?");
    let pending = [];
    const first = await agent.runAgent(
        { tools: [locate] },
        {
            onRunFinishedEvent: ({ pendingToolCallIds }) => {
                pending = pendingToolCallIds;
            },
        },
    );
    const [call] = first.newMessages.at(-1).toolCalls;
    assert.deepEqual(pending, [call.id]);
    agent.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: call.id, content: "Bonn" });
    const { newMessages } = await agent.runAgent({ tools: [locate] });
    assert.match(newMessages.at(-1).content, /Bonn/);
});

test("the state of the application comes back as it was", async () => {
    const agent = new HttpAgent({ url, initialState: { cart: [17] } });
    say(agent, "What is 2 + 3?");
    await agent.runAgent();
    assert.deepEqual(agent.state, { cart: [17] });
});

test("a call that needs an approval is an interrupt, and the decision continues the run", async () => {
    const agent = new HttpAgent({ url: `${process.env.AGENT_URL}/agents/careful/ag-ui` });
    say(agent, "What is 17% of 2340?");
    await agent.runAgent();
    const [interrupt] = agent.pendingInterrupts;
    assert.equal(interrupt.reason, "tool_call");
    const { newMessages } = await agent.runAgent({
        resume: [{ interruptId: interrupt.id, status: "resolved", payload: { approved: true } }],
    });
    assert.equal(newMessages[0].toolCallId, interrupt.toolCallId);
    assert.equal(newMessages.at(-1).role, "assistant");
    assert.deepEqual(agent.pendingInterrupts, []);
});

test("an agent that does not exist is an error with the names of the others", async () => {
    const agent = new HttpAgent({ url: `${process.env.AGENT_URL}/agents/none/ag-ui` });
    say(agent, "go");
    await assert.rejects(agent.runAgent(), /there is no agent 'none'.*beckon/);
});
