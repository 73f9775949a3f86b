import "./document.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";
import { argumentsInWords, originInWords } from "../../agent/beckon_agent/page/app/chat/call.js";
import { go, href, route } from "../../agent/beckon_agent/page/app/route.js";
import { page } from "./document.mjs";
import { waitFor } from "./server.mjs";

test("an address is read as a view with its parts and its query", () => {
    go("#/tools/my%20room/a%2Fb?raw=1");
    assert.equal(route.value.view, "tools");
    assert.deepEqual(route.value.parts, ["my room", "a/b"]);
    assert.equal(route.value.query.get("raw"), "1");
    go("#");
    assert.deepEqual([route.value.view, route.value.parts], ["chat", []]);
    go("#/runs/100%");
    assert.deepEqual(route.value.parts, ["100%"]);
});

test("the address of a place leads to it, whatever its name is", () => {
    const address = href("tools", "a/b", "c d?#");
    assert.equal(address, "#/tools/a%2Fb/c%20d%3F%23");
    go(address);
    assert.deepEqual(route.value.parts, ["a/b", "c d?#"]);
});

test("Back returns to where the visitor was, but not to a replaced address", async () => {
    go("#/runs");
    go("#/chat");
    go("#/chat/conv_1", { replace: true });
    history.back();
    await waitFor(() => page.window.location.hash === "#/runs", "Back has gone to the runs");
    await waitFor(() => route.value.view === "runs", "the route has followed");
});

test("the arguments of a call are one line of limited length", () => {
    assert.equal(argumentsInWords('{"city": "Rome", "days": [1, 2]}'), "city: Rome · days: [1,2]");
    assert.equal(argumentsInWords(""), "");
    assert.equal(argumentsInWords("7"), "7");
    assert.equal(argumentsInWords("not json"), "not json");
    assert.equal(argumentsInWords(JSON.stringify({ text: "x".repeat(200) })).length, 91);
});

test("only a call that was read from text has its origin in words", () => {
    assert.match(originInWords("recovered"), /^Recovered: /);
    assert.match(originInWords("dialect"), /dialect/);
    assert.equal(originInWords("api"), null);
    assert.equal(originInWords(undefined), null);
});
