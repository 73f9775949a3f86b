import "./document.mjs";
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { textOf } from "../../agent/beckon_agent/page/app/chat/answer.js";
import { enrich, readTurns } from "../../agent/beckon_agent/page/app/chat/history.js";
import { sendJson, startServer } from "./server.mjs";

const { routes } = await startServer();

const message = (text) => ({ id: `msg_${text}`, type: "message", content: [{ type: "output_text", text }] });
const request = { id: "mcpr_1", type: "mcp_approval_request", name: "book", arguments: "{}" };

/** Adds a stored run to the server's documents. */
function store(id, { question = id, output = [], status = "completed", calls = [] } = {}) {
    const times = { created_at: 100, completed_at: 101 };
    routes[`GET /v1/responses/${id}`] = { id, status, output, usage: null, ...times };
    routes[`GET /v1/responses/${id}/input_items`] = {
        data: [{ type: "message", role: "user", content: question }],
    };
    routes[`GET /runs/${id}`] = { id, steps: [{ calls }] };
}

function storeConversation(...runs) {
    routes["GET /v1/conversations/c"] = { id: "c", metadata: {} };
    routes["GET /runs"] = { data: [...runs].reverse().map((id) => ({ id })), has_more: false };
}

beforeEach(() => {
    for (const route of Object.keys(routes)) delete routes[route];
});

test("the turns of a conversation come with their answers, the oldest first", async () => {
    store("resp_1", { question: "One?", output: [message("1")] });
    store("resp_2", { question: "Two?", output: [message("2")] });
    storeConversation("resp_1", "resp_2");
    const { turns, more } = await readTurns("c");
    assert.equal(more, false);
    assert.deepEqual(
        turns.map((turn) => [turn.run, turn.question, turn.answers.map(textOf)]),
        [
            ["resp_1", "One?", ["1"]],
            ["resp_2", "Two?", ["2"]],
        ],
    );
});

test("a turn with an approval has the answer after the decision, too", async () => {
    const call = { name: "book", approval: { id: "mcpr_1", decision: "approved" }, seconds: 3 };
    store("resp_1", { output: [request], calls: [call] });
    store("resp_1_2", { output: [{ id: "mcp_1", type: "mcp_call", name: "book" }, message("Booked.")] });
    storeConversation("resp_1");
    const [turn] = (await readTurns("c")).turns;
    assert.deepEqual(
        turn.answers.map((answer) => answer.id),
        ["resp_1", "resp_1_2"],
    );
    assert.deepEqual(turn.answers[0].decided, { mcpr_1: true });
    assert.equal(turn.answers[1].items[0].seconds, 3);
});

test("a run that is still at work is followed from its beginning", async () => {
    const waiting = { name: "book", approval: { id: "mcpr_1", decision: null } };
    store("resp_1", { status: "in_progress", output: [message("half")], calls: [waiting] });
    storeConversation("resp_1");
    const [answer] = (await readTurns("c")).turns[0].answers;
    assert.deepEqual(
        [answer.status, answer.items, answer.number, answer.waits],
        ["in_progress", [], -1, true],
    );
});

test("a run that was deleted, and a failed one that was repeated, are left out", async () => {
    store("resp_1", { question: "Same?", status: "failed" });
    store("resp_2", { question: "Same?", output: [message("yes")] });
    store("resp_3", { question: "Other?", status: "failed" });
    storeConversation("resp_0", "resp_1", "resp_2", "resp_3");
    assert.deepEqual(
        (await readTurns("c")).turns.map((turn) => turn.run),
        ["resp_2", "resp_3"],
    );
});

test("another error of a run is not hidden", async () => {
    store("resp_1");
    storeConversation("resp_1");
    routes["GET /runs/resp_1"] = (_, response) => sendJson(response, { detail: "No store." }, 503);
    await assert.rejects(readTurns("c"), { status: 503, message: "No store." });
});

test("a conversation without runs has the turns of its items", async () => {
    storeConversation();
    routes["GET /v1/conversations/c/items"] = {
        data: [
            { id: "i0", type: "message", role: "assistant", content: [{ text: "before any question" }] },
            { id: "i1", type: "message", role: "user", content: "One?" },
            { ...message("1"), role: "assistant" },
            { ...message("more"), role: "assistant" },
            { id: "i2", type: "message", role: "user", content: "Two?" },
        ],
        has_more: false,
    };
    const { turns } = await readTurns("c");
    assert.deepEqual(
        turns.map((turn) => [turn.question, turn.answers.map(textOf)]),
        [
            ["One?", ["1\n\nmore"]],
            ["Two?", []],
        ],
    );
});

test("two calls of one tool get their own durations", () => {
    const shown = (id) => ({ id, item: { type: "mcp_call", name: "add" } });
    const answers = [{ items: [shown("a"), shown("b")] }];
    enrich(answers, [
        { name: "add", seconds: 1 },
        { name: "add", seconds: null },
    ]);
    assert.deepEqual(
        answers[0].items.map((one) => one.seconds),
        [1, undefined],
    );
});
