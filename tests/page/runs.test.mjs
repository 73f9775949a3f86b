import assert from "node:assert/strict";
import { test } from "node:test";
import { lanesOf, lengthOf } from "../../agent/beckon_agent/page/app/runs/lanes.js";
import { scaleOf } from "../../agent/beckon_agent/page/app/runs/scale.js";
import {
    endingOf,
    isOver,
    questionOf,
    stateOfCall,
    stateOfRun,
} from "../../agent/beckon_agent/page/app/runs/states.js";

const call = (more = {}) => ({
    event_id: "call-1",
    name: "add",
    state: "done",
    failed: false,
    approval: null,
    attempts: 1,
    sent_at: 101,
    finished_at: 103,
    seconds: 1.5,
    ...more,
});
const step = (more = {}) => ({ step: 0, seconds: 1, ended_at: 101, calls: [], ...more });
const run = (more = {}) => ({
    status: "completed",
    created_at: 100,
    ended_at: 110,
    taken_over_at: null,
    steps: [],
    ...more,
});

test("a run has a row for each answer and each call, in order", () => {
    const lanes = lanesOf(
        run({
            steps: [
                step({ calls: [call(), call({ event_id: "call-2" })] }),
                step({ step: 1, ended_at: 110, seconds: 2 }),
            ],
        }),
        999,
    );
    assert.deepEqual(
        lanes.rows.map((row) => [row.kind, row.key]),
        [
            ["turn", "turn-0"],
            ["call", "call-1"],
            ["call", "call-2"],
            ["turn", "turn-1"],
        ],
    );
    assert.deepEqual([lanes.from, lanes.to], [100, 110]);
    assert.deepEqual(lanes.rows[0].bars, [{ from: 100, to: 101, kind: "model", live: false }]);
    assert.deepEqual(lanes.rows[1].bars, [{ from: 101, to: 103, kind: "good", live: false }]);
    assert.deepEqual(lanes.rows.map(lengthOf), [1, 1.5, 1.5, 2]);
});

test("a run at work ends now, with the model thinking after its calls", () => {
    const { rows, to } = lanesOf(
        run({ status: "running", ended_at: null, steps: [step({ calls: [call()] })] }),
        105,
    );
    assert.equal(to, 105);
    assert.equal(rows.at(-1).kind, "thinking");
    assert.deepEqual(rows.at(-1).bars, [{ from: 103, to: 105, kind: "model", live: true }]);
    assert.equal(lengthOf(rows.at(-1)), null);
});

test("a call that has no answer yet grows, and the model waits for it", () => {
    const sent = call({ state: "sent", finished_at: null, seconds: null });
    const { rows } = lanesOf(
        run({ status: "running", ended_at: null, steps: [step({ calls: [sent] })] }),
        105,
    );
    assert.deepEqual(
        rows.map((row) => row.kind),
        ["turn", "call"],
    );
    assert.deepEqual(rows[1].bars, [{ from: 101, to: 105, kind: "under-way", live: true }]);
});

test("a wait for approval, a lost attempt and a failure have bars of their own", () => {
    const approved = call({
        approval: { decision: "approved", decided_at: 102 },
        attempts: 2,
        sent_at: 102.5,
        failed: true,
    });
    const { rows, busy } = lanesOf(run({ steps: [step({ calls: [approved] })] }), 999);
    assert.deepEqual(
        rows[1].bars.map(({ kind, from, to }) => [kind, from, to]),
        [
            ["waiting", 101, 102],
            ["lost", 102, 102.5],
            ["bad", 102.5, 103],
        ],
    );
    assert.deepEqual(busy, [
        [100, 101],
        [102.5, 103],
    ]);
    assert.deepEqual(lanesOf(run({ taken_over_at: 104 }), 999).marks, [{ time: 104, text: "taken over" }]);
});

test("a scale without waits is even", () => {
    const { at, cuts, ticks } = scaleOf(100, 110, [[100, 110]]);
    assert.deepEqual([100, 105, 110].map(at), [0, 0.5, 1]);
    assert.deepEqual(cuts, []);
    assert.deepEqual(
        ticks.map((tick) => tick.text),
        ["0 ms", "2.0 s", "4.0 s", "6.0 s", "8.0 s"],
    );
});

test("a long wait is cut short, and what is worked keeps its share", () => {
    const { at, cuts } = scaleOf(0, 1010, [
        [0, 5],
        [1005, 1010],
    ]);
    assert.equal(cuts.length, 1);
    assert.equal(cuts[0].seconds, 1000);
    assert.ok(Math.abs(at(5) - 5 / 11.4) < 1e-9, String(at(5)));
    assert.ok(Math.abs(at(1005) - 6.4 / 11.4) < 1e-9, String(at(1005)));
    assert.equal(at(1010), 1);
    assert.equal(at(-5), 0);
    assert.equal(at(2000), 1);
});

test("ticks do not stand in one another's words", () => {
    for (const to of [0.001, 0.03, 0.9, 7, 61, 4000]) {
        const places = scaleOf(0, to, [[0, to]]).ticks.map((tick) => tick.place);
        assert.ok(places.length >= 1, `no tick up to ${to}`);
        for (const [index, place] of places.entries())
            if (index) assert.ok(place - places[index - 1] >= 0.08, `${places} up to ${to}`);
    }
});

test("a call is described by its state, or by what it lacked when its run was over", () => {
    const going = run({ ended_at: null });
    const name = (one, of = run()) => stateOfCall(one, of).name;
    assert.equal(name(call({ state: "sent" }), going), "In progress");
    assert.equal(name(call({ state: "approval" }), going), "Waiting for you");
    assert.equal(name(call()), "Done");
    assert.equal(name(call({ failed: true, reason: "timeout" })), "No answer in time");
    assert.equal(name(call({ failed: true, reason: "anything" })), "Failed");
    assert.equal(name(call({ state: "sent" })), "No answer came");
    assert.equal(name(call({ state: "later" })), "later");
    assert.equal(stateOfCall(call({ failed: true, reason: "denied" }), run()).tone, "warn");
});

test("a run is described by its status, its question and its ending", () => {
    assert.equal(isOver(run()), true);
    assert.equal(isOver(run({ ended_at: null })), false);
    assert.deepEqual(stateOfRun(run({ status: "suspended" })), { name: "Waiting", tone: "warn" });
    assert.deepEqual(stateOfRun(run({ status: "new" })), { name: "new", tone: "plain" });
    assert.equal(questionOf({ question: 'Sum.\n\n<file name="a">\n1\n</file>' }), "Sum.");
    assert.equal(questionOf({ question: '<file name="a">\n1\n</file>' }), "With a file");
    assert.equal(questionOf({ question: "" }), "A run without a question");
    assert.equal(endingOf({ ending: "length" }), "the answer reached its token limit");
    assert.equal(endingOf({ ending: "anything" }), "");
});
