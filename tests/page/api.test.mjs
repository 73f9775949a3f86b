import "./document.mjs";
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import {
    ApiError,
    events,
    get,
    post,
    postWithProgress,
    remove,
} from "../../agent/beckon_agent/page/app/api.js";
import { key, signIn, signOut, wanted } from "../../agent/beckon_agent/page/app/session.js";
import { sendEvents, sendJson, startServer, waitFor } from "./server.mjs";

const { routes, requests } = await startServer();

beforeEach(() => {
    requests.length = 0;
    signOut();
    wanted.value = "";
});

async function gathered(stream) {
    const all = [];
    for await (const one of stream) all.push(one);
    return all;
}

const failing = (work) =>
    work.then(
        () => assert.fail("no error"),
        (error) => error,
    );

test("a request has its parameters without those that are empty, and no key where there is none", async () => {
    routes["GET /v1/models"] = { data: [] };
    const params = { query: "a b", after: "", limit: 0, agent: null, last: undefined };
    assert.deepEqual(await get("v1/models", { params }), { data: [] });
    assert.deepEqual(requests[0].query, { query: "a b", limit: "0" });
    assert.equal(requests[0].headers.authorization, undefined);
});

test("a key is sent with every request, and a body as JSON", async () => {
    routes["POST /v1/conversations"] = { id: "conv_1" };
    signIn("sk-1");
    assert.deepEqual(await post("/v1/conversations", { metadata: {} }), { id: "conv_1" });
    assert.equal(requests[0].headers.authorization, "Bearer sk-1");
    assert.equal(requests[0].headers["content-type"], "application/json");
    assert.deepEqual(requests[0].body, { metadata: {} });
});

test("an answer without a body is null", async () => {
    routes["DELETE /v1/conversations/c"] = (_, response) => response.writeHead(204).end();
    assert.equal(await remove("v1/conversations/c"), null);
});

test("an error has the agent's own sentence, in OpenAI's shape or as a problem document", async () => {
    routes["GET /openai"] = (_, response) =>
        sendJson(response, { error: { message: "Too many.", code: "rate_limit" } }, 429, {
            "retry-after": "7",
        });
    routes["GET /problem"] = (_, response) =>
        sendJson(response, { title: "Bad", detail: "The name is bad." }, 400);
    const openai = await failing(get("openai"));
    assert.ok(openai instanceof ApiError);
    assert.deepEqual(
        [openai.status, openai.message, openai.code, openai.retryAfter],
        [429, "Too many.", "rate_limit", 7],
    );
    const problem = await failing(get("problem"));
    assert.deepEqual([problem.status, problem.message], [400, "The name is bad."]);
});

test("what is read is read once more where no answer came, and a write is not repeated", async () => {
    const first = [];
    routes["GET /v1/models"] = (_, response) =>
        first.push(response) === 1 ? response.destroy() : sendJson(response, { data: [] });
    routes["GET /gone"] = (_, response) => response.destroy();
    routes["POST /v1/conversations"] = (_, response) => response.destroy();

    assert.deepEqual(await get("v1/models"), { data: [] });
    const unread = await failing(get("gone"));
    const unwritten = await failing(post("v1/conversations", {}));

    assert.deepEqual([unread.status, unwritten.status], [0, 0]);
    assert.deepEqual(
        requests.map((request) => request.route),
        ["GET /v1/models", "GET /v1/models", "GET /gone", "GET /gone", "POST /v1/conversations"],
    );
});

test("an error page of a proxy is reported by its status", async () => {
    routes["GET /proxy"] = (_, response) => response.writeHead(502).end("<html>");
    const error = await failing(get("proxy"));
    assert.equal(error.status, 502);
    assert.match(error.message, /^The answer was 502 Bad Gateway/);
});

test("an agent that wants a key opens the sign-in, which a key closes", async () => {
    routes["GET /closed"] = (_, response) => sendJson(response, { detail: "Send a key." }, 401);
    await failing(get("closed"));
    assert.equal(wanted.value, "Send a key.");
    signIn("sk-2");
    assert.equal(wanted.value, "");
    assert.equal(sessionStorage.getItem("beckon.key"), "sk-2");
    signOut();
    assert.equal(key.value, "");
    assert.equal(sessionStorage.getItem("beckon.key"), null);
});

test("an agent that is gone is an error with status 0 and the cause", async () => {
    routes["GET /gone"] = (_, response) => response.destroy();
    const error = await failing(get("gone"));
    assert.equal(error.status, 0);
    assert.match(error.message, /^The agent does not answer/);
    assert.ok(error.cause instanceof Error);
});

test("a request that was given up here is no error of the agent", async () => {
    routes["GET /slow"] = () => undefined;
    const leaving = new AbortController();
    const request = failing(get("slow", { signal: leaving.signal }));
    await waitFor(() => requests.length === 1, "the request has arrived");
    leaving.abort();
    assert.equal((await request).name, "AbortError");
});

test("events come whole, however the stream is divided", async () => {
    routes["GET /stream"] = async (_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (const byte of Buffer.from(
            'data: {"text": "Zürich 😀"}\n\n: a comment\n\ndata: {"n": 2}\n\ndata: [DONE]\n\ndata: 3\n\n',
        )) {
            response.write(Buffer.from([byte]));
            await new Promise(setImmediate);
        }
        response.end();
    };
    assert.deepEqual(await gathered(events("GET", "stream")), [{ text: "Zürich 😀" }, { n: 2 }]);
    assert.equal(requests[0].headers.accept, "text/event-stream");
});

test("a stream that breaks is an error after its events", async () => {
    routes["GET /breaks"] = (_, response) => {
        sendEvents(response, { n: 1 });
        setTimeout(() => response.destroy(), 50);
    };
    const found = [];
    const error = await failing(
        (async () => {
            for await (const one of events("GET", "breaks")) found.push(one);
        })(),
    );
    assert.deepEqual(found, [{ n: 1 }]);
    assert.equal(error.status, 0);
});

test("a call's progress is reported before its answer", async () => {
    routes["POST /tools/add"] = (_, response) => {
        sendEvents(
            response,
            ["progress", { progress: 1 }],
            ["progress", { progress: 2 }],
            ["result", { result: 5 }],
        );
        response.end();
    };
    const reports = [];
    assert.deepEqual(await postWithProgress("tools/add", {}, (report) => reports.push(report)), {
        result: 5,
    });
    assert.deepEqual(reports, [{ progress: 1 }, { progress: 2 }]);
});

test("a call may be answered without a stream, fail in its stream, or lose its connection", async () => {
    const call = (name) => postWithProgress(`tools/${name}`, {}, () => assert.fail("progress"));
    routes["POST /tools/quick"] = { result: 1 };
    assert.deepEqual(await call("quick"), { result: 1 });
    routes["POST /tools/bad"] = (_, response) => {
        sendEvents(response, ["problem", { status: 504, title: "Late", detail: "No answer in time." }]);
        response.end();
    };
    const late = await failing(call("bad"));
    assert.deepEqual([late.status, late.message], [504, "No answer in time."]);
    routes["POST /tools/cut"] = (_, response) =>
        response.writeHead(200, { "content-type": "text/event-stream" }).end();
    assert.equal((await failing(call("cut"))).message, "The connection broke before the answer came.");
});
