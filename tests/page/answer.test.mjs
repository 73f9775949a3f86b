import assert from "node:assert/strict";
import { test } from "node:test";
import {
    answerOf,
    apply,
    approvalsOf,
    citedPages,
    isForm,
    isOver,
    needsDecision,
    newAnswer,
    textOf,
} from "../../agent/beckon_agent/page/app/chat/answer.js";

const message = (text) => ({ id: "msg_1", type: "message", content: [{ type: "output_text", text }] });
const call = (more = {}) => ({
    id: "mcp_1",
    type: "mcp_call",
    name: "add",
    arguments: "",
    status: "in_progress",
    ...more,
});
const response = (more = {}) => ({
    id: "resp_1",
    status: "completed",
    created_at: 100,
    completed_at: 102.5,
    output: [],
    usage: { total_tokens: 7 },
    ...more,
});

function applied(...events) {
    const answer = newAnswer();
    for (const [index, event] of events.entries()) apply(answer, { sequence_number: index, ...event });
    return answer;
}

test("the events of a stream grow an answer", () => {
    const answer = applied(
        { type: "response.created", response: { id: "resp_1", status: "queued" } },
        { type: "response.output_item.added", output_index: 0, item: call() },
        { type: "response.mcp_call_arguments.done", output_index: 0, arguments: '{"a":1}' },
        { type: "response.output_item.added", output_index: 1, item: message("") },
        { type: "response.output_text.delta", output_index: 1, delta: "One, " },
        { type: "response.output_text.delta", output_index: 1, delta: "two" },
    );
    assert.equal(answer.id, "resp_1");
    assert.equal(answer.status, "in_progress");
    assert.equal(answer.number, 5);
    assert.equal(answer.items[0].item.arguments, '{"a":1}');
    assert.equal(textOf(answer), "One, two");
    assert.equal(isOver(answer), false);
});

test("a refusal is the text of its answer", () => {
    const refusing = { ...message(""), content: [] };
    const refused = { ...message(""), content: [{ type: "refusal", refusal: "I cannot." }] };
    const streamed = applied(
        { type: "response.output_item.added", output_index: 0, item: refusing },
        { type: "response.refusal.delta", output_index: 0, delta: "I can" },
        { type: "response.refusal.delta", output_index: 0, delta: "not." },
    );
    assert.equal(textOf(streamed), "I cannot.");
    assert.equal(textOf(answerOf(response({ output: [refused] }))), "I cannot.");
});

test("a message's cited pages are listed once each, and none that could run a script", () => {
    const cites = (url, title) => ({ type: "url_citation", url, title, start_index: 0, end_index: 4 });
    const annotations = [
        cites("https://example.com/tides", "Tides"),
        cites("https://example.com/tides", "Tides again"),
        cites("http://example.com/moon", ""),
        cites("javascript:alert(1)", "A script"),
    ];
    const citing = [
        { type: "output_text", text: "High.", annotations },
        { type: "refusal", refusal: "No more." },
    ];
    assert.deepEqual(citedPages({ ...message(""), role: "assistant", content: citing }), [
        { url: "https://example.com/tides", title: "Tides" },
        { url: "http://example.com/moon", title: "http://example.com/moon" },
    ]);
    assert.deepEqual(citedPages({ ...message("of a user"), role: "user" }), []);
    assert.deepEqual(citedPages(call()), []);
});

test("a tool's progress is part of its call until the call is done", () => {
    const events = [
        { type: "response.output_item.added", output_index: 0, item: call() },
        { type: "beckon:mcp_call.progress", output_index: 0, progress: 1, total: 4, message: "one of four" },
    ];
    assert.deepEqual(applied(...events).items[0].report, { progress: 1, total: 4, message: "one of four" });
    const done = applied(...events, {
        type: "response.output_item.done",
        output_index: 0,
        item: call({ status: "completed", output: "5" }),
    });
    assert.equal(done.items[0].report, undefined);
    assert.equal(done.items[0].item.output, "5");
    assert.equal(typeof done.items[0].seconds, "number");
});

test("the response at its end replaces what was streamed", () => {
    const answer = applied(
        { type: "response.output_item.added", output_index: 0, item: message("dropped") },
        {
            type: "response.completed",
            response: response({ output: [{ ...message("whole"), id: "msg_2" }] }),
        },
    );
    assert.equal(textOf(answer), "whole");
    assert.equal(answer.items.length, 1);
    assert.deepEqual(answer.usage, { total_tokens: 7 });
    assert.equal(isOver(answer), true);
});

test("events of items that were never added, and unknown events, change nothing", () => {
    const answer = applied(
        { type: "response.output_text.delta", output_index: 3, delta: "lost" },
        { type: "beckon:mcp_call.progress", output_index: 3, progress: 1 },
        { type: "response.future_event", output_index: 0 },
    );
    assert.deepEqual(answer.items, []);
    assert.equal(answer.number, 2);
});

test("an answer that was cut short has its reason, the agent's own first", () => {
    const cut = (details) => answerOf(response({ status: "incomplete", incomplete_details: details })).reason;
    assert.equal(cut({ reason: "max_output_tokens" }), "max_output_tokens");
    assert.equal(cut({ reason: "content_filter", ending: "incomplete" }), "incomplete");
});

test("a failed answer has its error, a stored one the seconds that it took", () => {
    const answer = answerOf(response({ status: "failed", error: { message: "no model" } }));
    assert.equal(answer.error, "no model");
    assert.equal(answer.seconds, 2.5);
    assert.equal(answerOf(response({ completed_at: null })).seconds, null);
    assert.equal(applied({ type: "error", message: "too busy" }).error, "too busy");
});

test("an answer asks if it is complete and ends with requests for approval", () => {
    const request = { id: "mcpr_1", type: "mcp_approval_request", name: "book", arguments: "{}" };
    const answer = answerOf(response({ output: [message("May I?"), request] }));
    assert.deepEqual(
        approvalsOf(answer).map((shown) => shown.id),
        ["mcpr_1"],
    );
    assert.equal(needsDecision(answer), true);
    assert.equal(needsDecision({ ...answer, status: "cancelled" }), false);
    assert.equal(needsDecision(answerOf(response({ output: [message("Done.")] }))), false);
});

test("the form of a tool is no question of the answer", () => {
    const form = { ...call(), id: "inreq_resp_1.0.0", type: "mcp_approval_request" };
    const answer = answerOf(response({ output: [form, message("Done.")] }));
    assert.deepEqual(approvalsOf(answer), []);
    assert.equal(needsDecision(answer), false);
    assert.equal(isForm(answer.items[0]), true);
});
