import "./document.mjs";
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import {
    branch,
    close,
    list,
    refresh,
    runsOf,
    setTitle,
    titleOf,
    titleOfId,
} from "../../agent/beckon_agent/page/app/chat/conversations.js";
import { signIn } from "../../agent/beckon_agent/page/app/session.js";
import { sendJson, startServer } from "./server.mjs";

const { routes, requests } = await startServer();

beforeEach(() => {
    requests.length = 0;
    signIn("sk-1");
});

const conversation = (id, more = {}) => ({ id, metadata: {}, title: "", used_at: 1, ...more });
const page = (data, more = false) => ({ data, has_more: more, last_id: data.at(-1)?.id ?? "" });

test("a title is the given one, the first question, or what was typed until the agent knows it", () => {
    assert.equal(titleOf(conversation("c1", { metadata: { title: "Mine" }, title: "Question" })), "Mine");
    assert.equal(titleOf(conversation("c1", { title: 'Sum.\n<file name="a">\n1\n</file>' })), "Sum.");
    assert.equal(titleOf(conversation("c1", { title: '<file name="a">\n1\n</file>' })), "With a file");
    assert.equal(titleOf(conversation("c1")), "New conversation");
    setTitle("c1", `  What\n is ${"long ".repeat(40)}`);
    assert.equal(titleOf(conversation("c1")).length, 80);
    assert.match(titleOfId("c1"), /^What is long/);
});

test("the list grows page by page, and a search begins it anew", async () => {
    routes["GET /v1/conversations"] = ({ query }, response) => {
        if (query.query) sendJson(response, page([conversation("found")]));
        else if (query.after) sendJson(response, page([conversation("c2")]));
        else sendJson(response, page([conversation("c1")], true));
    };
    const ids = () => list.value.data.map((one) => one.id);
    await refresh();
    assert.deepEqual([ids(), list.value.more], [["c1"], true]);
    await refresh({ more: true });
    assert.deepEqual([ids(), list.value.more], [["c1", "c2"], false]);
    assert.equal(requests.at(-1).query.after, "c1");
    await refresh({ query: "tea" });
    assert.deepEqual([ids(), list.value.query], [["found"], "tea"]);
});

test("a late answer of an earlier search is not shown", async () => {
    const waiting = [];
    routes["GET /v1/conversations"] = ({ query }, response) => {
        if (query.query === "old") waiting.push(response);
        else sendJson(response, page([conversation("new")]));
    };
    const old = refresh({ query: "old" });
    await refresh({ query: "new" });
    sendJson(waiting[0], page([conversation("old")]));
    await old;
    assert.deepEqual(
        list.value.data.map((one) => one.id),
        ["new"],
    );
});

test("the list of one caller is gone when another one signs in", async () => {
    routes["GET /v1/conversations"] = page([conversation("c1")]);
    await refresh();
    assert.equal(list.value.data.length, 1);
    signIn("sk-2");
    assert.equal(list.value.data, null);
});

test("an error leaves the known conversations in the list", async () => {
    routes["GET /v1/conversations"] = page([conversation("c1")]);
    await refresh();
    routes["GET /v1/conversations"] = (_, response) => sendJson(response, { detail: "Try later." }, 503);
    await refresh();
    assert.deepEqual([list.value.data.length, list.value.error], [1, "Try later."]);
    routes["DELETE /v1/conversations/c1"] = {};
    await close("c1");
    assert.deepEqual(list.value.data, []);
});

test("a branch copies the items before a question, and stores the ids of its earlier runs", async () => {
    const runs = Array.from({ length: 17 }, (_, index) => `resp_${String(index).padStart(32, "0")}`);
    const items = Array.from({ length: 43 }, (_, index) => ({ id: `item_${index}`, type: "message" }));
    let metadata;
    routes["GET /v1/responses/resp_x/input_items"] = ({ query }, response) => {
        const start = query.after ? items.findIndex((one) => one.id === query.after) + 1 : 0;
        sendJson(response, page(items.slice(start, start + 30), start + 30 < items.length));
    };
    routes["POST /v1/conversations"] = ({ body }, response) => {
        metadata = body.metadata;
        sendJson(response, { id: "conv_2" });
    };
    routes["POST /v1/conversations/conv_2/items"] = {};
    assert.equal(await branch(runs, "resp_x"), "conv_2");
    const copied = requests.filter(({ route }) => route === "POST /v1/conversations/conv_2/items");
    assert.deepEqual(
        copied.map(({ body }) => body.items.length),
        [20, 20, 2],
    );
    assert.deepEqual(
        copied.flatMap(({ body }) => body.items),
        items.slice(0, -1),
    );
    assert.ok(Object.values(metadata).every((value) => value.length <= 512));

    routes["GET /v1/conversations/conv_2"] = { id: "conv_2", metadata };
    routes["GET /runs"] = page([{ id: "resp_later" }, { id: "chat_other" }]);
    assert.deepEqual(await runsOf("conv_2"), { runs: [...runs, "resp_later"], more: false });
});

test("a branch at the first question copies nothing", async () => {
    routes["POST /v1/conversations"] = { id: "conv_3" };
    assert.equal(await branch([], "resp_x"), "conv_3");
    assert.deepEqual(
        requests.map(({ route }) => route),
        ["POST /v1/conversations"],
    );
});
