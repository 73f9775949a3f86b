// The `openai` package of Node against an agent with the demo model: BASE_URL is its OpenAI base URL.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";

// Says why a connection failed, which the package's error does not.
async function telling(address, init) {
    try {
        return await fetch(address, init);
    } catch (error) {
        console.error(String(address), error);
        throw error;
    }
}

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: "sk-any", maxRetries: 0, fetch: telling });
const model = "beckon";
const messages = [{ role: "user", content: "What is 17% of 2340?" }];
const locate = {
    type: "function",
    function: {
        name: "locate_user",
        description: "Locate the user: the city where the user is.",
        parameters: { type: "object", properties: {} },
    },
};

test("the agents are the models", async () => {
    const listed = [];
    for await (const found of client.models.list()) listed.push(found.id);
    assert.deepEqual(listed, [model, "editor", "researcher"]);
});

test("chat completions stream what they answer whole, a call of the cluster on the way", async () => {
    const whole = await client.chat.completions.create({ model, messages });
    const stream = await client.chat.completions.create({
        model,
        messages,
        stream: true,
        stream_options: { include_usage: true },
    });
    let text = "";
    let finish = null;
    let usage = null;
    for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? "";
        finish = chunk.choices[0]?.finish_reason ?? finish;
        usage = chunk.usage ?? usage;
    }
    assert.match(whole.choices[0].message.content, /397\.8/);
    assert.equal(text, whole.choices[0].message.content);
    assert.equal(finish, whole.choices[0].finish_reason);
    assert.deepEqual(usage, whole.usage);
});

test("the helper runs a function of the client's own beside the cluster's", async () => {
    const calls = [];
    const runner = client.chat.completions.runTools({
        model,
        messages: [{ role: "user", content: "Locate the user: in which city?" }],
        tools: [
            {
                ...locate,
                function: {
                    ...locate.function,
                    parse: JSON.parse,
                    function: (given) => calls.push(given) && "Bonn",
                },
            },
        ],
    });
    assert.match(await runner.finalContent(), /Bonn/);
    assert.deepEqual(calls, [{}]);
});

test("a response has the cluster's call as an item, whole and streamed", async () => {
    const whole = await client.responses.create({ model, input: messages[0].content });
    assert.match(whole.output_text, /397\.8/);
    assert.deepEqual(
        whole.output.map((item) => item.type),
        ["mcp_call", "message"],
    );

    const stream = client.responses.stream({ model, input: messages[0].content });
    const kinds = new Set();
    for await (const event of stream) kinds.add(event.type);
    const final = await stream.finalResponse();
    assert.equal(final.output_text, whole.output_text);
    for (const kind of ["response.created", "response.mcp_call.completed", "response.completed"]) {
        assert.ok(kinds.has(kind), kind);
    }
});

test("a conversation goes on from a response", async () => {
    const first = await client.responses.create({ model, input: "What is 2 + 3?" });
    const second = await client.responses.create({
        model,
        input: "What is 4 + 5?",
        previous_response_id: first.id,
    });
    assert.equal(second.previous_response_id, first.id);
    const listed = [];
    for await (const item of client.responses.inputItems.list(second.id)) listed.push(item);
    assert.ok(listed.length > 2);
});

test("a response in the background is joined where its stream broke off, and deleted", async () => {
    const stream = await client.responses.create({
        model,
        input: messages[0].content,
        background: true,
        stream: true,
    });
    let first = null;
    for await (const event of stream) {
        first = event;
        break;
    }
    assert.equal(first.type, "response.created");
    const rest = await client.responses.retrieve(first.response.id, {
        stream: true,
        starting_after: first.sequence_number,
    });
    let last = null;
    const numbers = [];
    for await (const event of rest) {
        numbers.push(event.sequence_number);
        last = event;
    }
    assert.equal(numbers[0], first.sequence_number + 1);
    assert.equal(last.type, "response.completed");
    const found = await client.responses.retrieve(first.response.id);
    assert.match(found.output_text, /397\.8/);
    await client.responses.delete(found.id);
    await assert.rejects(client.responses.retrieve(found.id), OpenAI.NotFoundError);
});

test("a function of the client's is handed back as an item, and answered by one", async () => {
    const tools = [{ ...locate.function, type: "function", strict: false }];
    const input = "Locate the user: in which city?";
    const asked = await client.responses.create({ model, input, tools });
    const [call] = asked.output;
    assert.equal(call.type, "function_call");
    const answered = await client.responses.create({
        model,
        tools,
        previous_response_id: asked.id,
        input: [{ type: "function_call_output", call_id: call.call_id, output: "Bonn" }],
    });
    assert.match(answered.output_text, /Bonn/);
});

test("conversations are opened, added to and read", async () => {
    const opened = await client.conversations.create({ metadata: { for: "a test" } });
    await client.responses.create({ model, input: "What is 2 + 3?", conversation: opened.id });
    const kinds = [];
    for await (const item of client.conversations.items.list(opened.id, { order: "asc" }))
        kinds.push(item.type);
    assert.deepEqual(kinds, ["message", "mcp_call", "message"]);
    await client.conversations.delete(opened.id);
    await assert.rejects(client.conversations.retrieve(opened.id), OpenAI.NotFoundError);
});

test("errors are of the package's classes, and name their request", async () => {
    const wrong = client.chat.completions.create(
        { model: "gpt-nothing", messages },
        { headers: { "x-request-id": "mine" } },
    );
    await assert.rejects(wrong, (error) => {
        assert.ok(error instanceof OpenAI.NotFoundError);
        assert.equal(error.code, "model_not_found");
        assert.equal(error.requestID, "mine");
        return true;
    });
    await assert.rejects(
        client.responses.create({ model, input: "go", temperature: 7 }),
        (error) => error instanceof OpenAI.BadRequestError && error.param === "temperature",
    );
});
