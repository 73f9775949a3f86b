import "./document.mjs";
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { agent, loadAgents } from "../../agent/beckon_agent/page/app/agents.js";
import { textOf } from "../../agent/beckon_agent/page/app/chat/answer.js";
import { threadOf } from "../../agent/beckon_agent/page/app/chat/thread.js";
import { go, route } from "../../agent/beckon_agent/page/app/route.js";
import { signIn } from "../../agent/beckon_agent/page/app/session.js";
import { sendEvents, sendJson, startServer, waitFor } from "./server.mjs";

const { routes, requests } = await startServer();

const message = (text) => ({ id: "msg_1", type: "message", content: [{ type: "output_text", text }] });
const created = {
    type: "response.created",
    sequence_number: 0,
    response: { id: "resp_1", status: "queued" },
};
const added = { type: "response.output_item.added", sequence_number: 1, output_index: 0, item: message("") };
const delta = (text) => ({
    type: "response.output_text.delta",
    sequence_number: 2,
    output_index: 0,
    delta: text,
});
const ended = (status, output = []) => ({
    type: `response.${status === "cancelled" ? "completed" : status}`,
    sequence_number: 3,
    response: { id: "resp_1", status, output, usage: null },
});

beforeEach(async () => {
    for (const name of Object.keys(routes)) delete routes[name];
    routes["GET /v1/models"] = { data: [{ id: "beckon" }] };
    routes["GET /v1/conversations"] = { data: [], has_more: false, last_id: "" };
    routes["POST /v1/conversations"] = { id: "conv_1" };
    routes["GET /runs/resp_1"] = { id: "resp_1", steps: [] };
    signIn("sk-1");
    await loadAgents();
    go("#/chat");
    requests.length = 0;
});

const sent = (name) => requests.filter((request) => request.route === name);

test("a question opens a conversation, and the address follows it", async () => {
    routes["POST /v1/responses"] = (_, response) => {
        sendEvents(response, created, added, delta("Hello"), ended("completed", [message("Hello")]));
        response.end();
    };
    const thread = threadOf("");
    const sending = thread.send("Hi?");
    assert.equal(thread.busy, true);
    await sending;
    assert.equal(thread.busy, false);
    assert.equal(thread.id, "conv_1");
    assert.equal(threadOf("conv_1"), thread);
    assert.deepEqual(route.value.parts, ["conv_1"]);
    assert.equal(textOf(thread.turns[0].answers[0]), "Hello");
    const [{ body }] = sent("POST /v1/responses");
    assert.equal(body.model, agent.value);
    assert.deepEqual(
        [body.conversation, body.input],
        ["conv_1", [{ type: "message", role: "user", content: "Hi?" }]],
    );
});

test("a stream that broke goes on after its last event", async () => {
    routes["POST /v1/responses"] = (_, response) => {
        sendEvents(response, created, added, delta("One, "));
        setTimeout(() => response.destroy(), 50);
    };
    routes["GET /v1/responses/resp_1"] = (_, response) => {
        sendEvents(response, { ...delta("two"), sequence_number: 3 });
        sendEvents(response, { ...ended("completed", [message("One, two")]), sequence_number: 4 });
        response.end();
    };
    const thread = threadOf("");
    await thread.send("Count.");
    assert.equal(textOf(thread.turns[0].answers[0]), "One, two");
    assert.equal(sent("GET /v1/responses/resp_1")[0].query.starting_after, "2");
    assert.equal(sent("POST /v1/responses").length, 1);
});

test("a refused question is an error of its answer, and is not sent again", async () => {
    routes["POST /v1/responses"] = (_, response) =>
        sendJson(response, { error: { message: "No such model." } }, 400);
    const thread = threadOf("");
    await thread.send("Hi?");
    assert.equal(thread.turns[0].answers[0].failure.message, "No such model.");
    assert.equal(thread.busy, false);
    assert.equal(sent("POST /v1/responses").length, 1);
});

test("a failed question that is sent again takes the place of the first", async () => {
    let tries = 0;
    routes["POST /v1/responses"] = (_, response) => {
        tries += 1;
        sendEvents(response, created, ended(tries === 1 ? "failed" : "completed", [message("now")]));
        response.end();
    };
    const thread = threadOf("");
    await thread.send("Hi?");
    await thread.repeatTurn(thread.turns[0]);
    assert.equal(thread.turns.length, 1);
    assert.equal(thread.turns[0].answers[0].status, "completed");
    assert.equal(thread.id, "conv_1");
    assert.equal(sent("POST /v1/conversations").length, 1);
});

test("a stop before the run has an id cancels it as soon as it has one", async () => {
    let stream;
    routes["POST /v1/responses"] = (_, response) => {
        stream = response;
        response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    };
    routes["POST /v1/responses/resp_1/cancel"] = (_, response) => {
        sendJson(response, {});
        sendEvents(stream, ended("cancelled"));
        stream.end();
    };
    const thread = threadOf("");
    const sending = thread.send("Hi?");
    await waitFor(() => stream, "the question has arrived");
    await thread.stop();
    assert.equal(sent("POST /v1/responses/resp_1/cancel").length, 0);
    sendEvents(stream, created);
    await sending;
    assert.equal(sent("POST /v1/responses/resp_1/cancel").length, 1);
    assert.equal(thread.turns[0].answers[0].status, "cancelled");
});

test("decisions are sent once all calls have theirs, and the next answer is followed", async () => {
    const request = (id) => ({ id, type: "mcp_approval_request", name: "book", arguments: "{}" });
    let next;
    routes["POST /v1/responses"] = ({ body }, response) => {
        if (body.input[0].type === "mcp_approval_response") {
            sendJson(response, {});
            sendEvents(next, { ...created, response: { id: "resp_1_2", status: "in_progress" } });
            sendEvents(next, { ...ended("completed", [message("Booked.")]), sequence_number: 4 });
            next.end();
            return;
        }
        sendEvents(response, created, ended("completed", [request("mcpr_1"), request("mcpr_2")]));
        response.end();
    };
    routes["GET /v1/responses/resp_1_2"] = (_, response) => {
        next = response;
        response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    };
    const thread = threadOf("");
    const sending = thread.send("Book two.");
    await waitFor(() => next, "the next answer is followed");
    assert.equal(thread.busy, false);
    const [turn] = thread.turns;
    const [first, second] = turn.answers[0].items;
    await thread.decide(turn, turn.answers[0], first.id, true);
    assert.equal(sent("POST /v1/responses").length, 1);
    await thread.decide(turn, turn.answers[0], second.id, false);
    await sending;
    assert.deepEqual(sent("POST /v1/responses")[1].body.input, [
        { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: true },
        { type: "mcp_approval_response", approval_request_id: "mcpr_2", approve: false },
    ]);
    assert.equal(textOf(turn.answers[1]), "Booked.");
});

test("a changed question in the middle begins another conversation, without the later turns", async () => {
    let number = 0;
    routes["POST /v1/responses"] = (_, response) => {
        number += 1;
        const run = {
            id: `resp_${number}`,
            status: "completed",
            output: [message(`${number}`)],
            usage: null,
        };
        sendEvents(response, { ...created, response: run }, { ...ended("completed"), response: run });
        response.end();
    };
    for (const run of [1, 2, 3, 4]) routes[`GET /runs/resp_${run}`] = { id: `resp_${run}`, steps: [] };
    const thread = threadOf("");
    for (const question of ["One?", "Two?", "Three?"]) await thread.send(question);
    const items = ["One?", "1", "Two?"].map((text, index) => ({
        id: `item_${index}`,
        type: "message",
        content: text,
    }));
    routes["GET /v1/responses/resp_2/input_items"] = { data: items, has_more: false };
    routes["POST /v1/conversations"] = { id: "conv_2" };
    routes["POST /v1/conversations/conv_2/items"] = {};
    routes["DELETE /v1/conversations/conv_1"] = {};
    await thread.repeatTurn(thread.turns[1], "Changed?");
    assert.deepEqual(
        thread.turns.map((turn) => [turn.run, turn.question]),
        [
            ["resp_1", "One?"],
            ["resp_4", "Changed?"],
        ],
    );
    assert.deepEqual(sent("POST /v1/conversations/conv_2/items")[0].body.items, items.slice(0, 2));
    assert.equal(sent("DELETE /v1/conversations/conv_1").length, 1);
    assert.equal(sent("POST /v1/responses").at(-1).body.conversation, "conv_2");
    assert.deepEqual(route.value.parts, ["conv_2"]);
});

test("a stored conversation is read, and its run in progress is followed to the end", async () => {
    routes["GET /v1/conversations/conv_9"] = { id: "conv_9", metadata: {} };
    routes["GET /runs"] = { data: [{ id: "resp_1" }], has_more: false };
    routes["GET /v1/responses/resp_1/input_items"] = {
        data: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hi?" }] }],
    };
    routes["GET /v1/responses/resp_1"] = ({ query }, response) => {
        if (!query.stream) {
            sendJson(response, {
                id: "resp_1",
                status: "in_progress",
                output: [],
                usage: null,
                created_at: 1,
            });
            return;
        }
        sendEvents(response, created, added, delta("Hello"), ended("completed", [message("Hello")]));
        response.end();
    };
    const thread = threadOf("conv_9");
    assert.equal(thread.loading, true);
    await waitFor(() => thread.turns[0]?.answers[0].status === "completed", "the run is over");
    assert.equal(thread.loading, false);
    assert.equal(textOf(thread.turns[0].answers[0]), "Hello");
    assert.equal(sent("GET /v1/responses/resp_1").at(-1).query.starting_after, "-1");
});

test("a conversation that cannot be read is an error of its thread", async () => {
    routes["GET /v1/conversations/conv_8"] = (_, response) =>
        sendJson(response, { detail: "It is gone." }, 404);
    const thread = threadOf("conv_8");
    await waitFor(() => !thread.loading, "the thread has tried");
    assert.equal(thread.failure.message, "It is gone.");
});

test("a hidden thread closes the stream of a run that waits for a person, and opens it when it is shown", async () => {
    const request = { id: "mcpr_1", type: "mcp_approval_request", name: "book", arguments: "{}" };
    routes["POST /v1/responses"] = (_, response) => {
        sendEvents(response, created, ended("completed", [request]));
        response.end();
    };
    const streams = [];
    routes["GET /v1/responses/resp_1_2"] = (_, response) => {
        streams.push(response);
        response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    };
    const thread = threadOf("");
    const sending = thread.send("Book.");
    await waitFor(() => streams.length === 1, "the next answer is followed");
    thread.rest();
    await sending;
    await waitFor(() => streams[0].destroyed, "the stream is closed");
    assert.equal(thread.turns[0].answers[1].failure, null);
    thread.wake();
    await waitFor(() => streams.length === 2, "the stream is open again");
    sendEvents(streams[1], { ...created, response: { id: "resp_1_2", status: "in_progress" } });
    sendEvents(streams[1], { ...ended("completed", [message("Booked.")]), sequence_number: 4 });
    streams[1].end();
    await waitFor(() => thread.turns[0].answers[1].status === "completed", "the answer is there");
});

test("the threads of one caller are gone when another one signs in", async () => {
    routes["POST /v1/responses"] = (_, response) => {
        sendEvents(response, created, ended("completed"));
        response.end();
    };
    const thread = threadOf("");
    await thread.send("Hi?");
    signIn("sk-2");
    assert.notEqual(threadOf(""), thread);
    assert.equal(thread.leaving.signal.aborted, true);
});
