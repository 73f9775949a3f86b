// A run as rows of a picture: each answer of the model, and below it the calls that it requested.
import { keyOf } from "./states.js";

/** @import { RunCall, RunDocument, RunStep } from "beckon-api" */

/** @typedef {{ from: number, to: number, kind: string, live: boolean }} Bar */
/** @typedef {{ time: number, text: string }} Mark */
/** @typedef {{ key: string, bars: Bar[], begun: number, ended: number }} RowFields */
/** @typedef {RowFields & { kind: "turn", step: RunStep }} TurnRow */
/** @typedef {RowFields & { kind: "call", step: RunStep, call: RunCall }} CallRow */
/** @typedef {RowFields & { kind: "thinking" }} ThinkingRow */
/** @typedef {TurnRow | CallRow | ThinkingRow} Row */
/** @typedef {{ rows: Row[], from: number, to: number, busy: [number, number][], marks: Mark[] }} Lanes */

const INSTANT = 0.001; // seconds; what has no length is drawn all the same

/**
 * Returns { rows, from, to, busy, marks }; times in Unix seconds, `now` for what is still going on.
 * @param {RunDocument} run
 * @param {number} now
 * @returns {Lanes}
 */
export function lanesOf(run, now) {
    /** @type {Row[]} */
    const rows = [];
    const over = run.ended_at !== null;
    const to = run.ended_at ?? now;
    let free = run.created_at; // since when the model could have been called
    for (const step of run.steps) {
        const ended = step.ended_at ?? free;
        const begun = step.seconds === null ? free : Math.max(ended - step.seconds, run.created_at);
        rows.push({
            kind: "turn",
            key: `turn-${step.step}`,
            step,
            bars: [bar(begun, ended, "model")],
            begun,
            ended,
        });
        for (const call of step.calls) rows.push(callRow(call, step, ended, to, over));
        const finished = step.calls.map((call) => call.finished_at ?? 0);
        free = Math.max(ended, ...finished);
    }
    const last = run.steps.at(-1);
    const waits = last?.calls.some((call) => call.state !== "done") ?? false;
    if (!over && run.status === "running" && !waits) {
        rows.push({
            kind: "thinking",
            key: `turn-${run.steps.length}`,
            bars: [bar(free, to, "model", true)],
            begun: free,
            ended: to,
        });
    }
    const busy = rows.flatMap((row) =>
        row.bars
            .filter((one) => one.kind !== "waiting" && one.kind !== "lost")
            .map((one) => /** @type {[number, number]} */ ([one.from, one.to])),
    );
    const marks = run.taken_over_at ? [{ time: run.taken_over_at, text: "taken over" }] : [];
    return { rows, from: run.created_at, to: Math.max(to, run.created_at + INSTANT), busy, marks };
}

/**
 * @param {RunCall} call
 * @param {RunStep} step
 * @param {number} requestedAt
 * @param {number} now
 * @param {boolean} over
 * @returns {CallRow}
 */
function callRow(call, step, requestedAt, now, over) {
    const bars = [];
    const done = call.state === "done";
    if (call.approval)
        bars.push(
            bar(
                requestedAt,
                call.approval.decided_at ?? now,
                "waiting",
                !over && call.approval.decided_at === null,
            ),
        );
    const sent = call.sent_at;
    // The process that sent an earlier attempt did not record its end.
    if (call.attempts > 1 && sent !== null)
        bars.push(bar(call.approval?.decided_at ?? requestedAt, sent, "lost"));
    if (sent !== null) {
        const end = call.finished_at ?? now;
        const waits = call.state === "accepted" || call.state === "input";
        const kind = done ? (call.failed ? "bad" : "good") : waits ? "waiting" : "under-way";
        bars.push(bar(sent, end, kind, !done && !over));
    } else if (done && !call.approval) {
        bars.push(bar(requestedAt, requestedAt, call.failed ? "bad" : "good"));
    }
    return {
        kind: "call",
        key: keyOf(call),
        call,
        step,
        bars,
        begun: requestedAt,
        ended: call.finished_at ?? now,
    };
}

/**
 * @param {number} from
 * @param {number} to
 * @param {string} kind
 * @param {boolean} [live]
 * @returns {Bar}
 */
function bar(from, to, kind, live = false) {
    return { from, to: Math.max(to, from), kind, live };
}

/**
 * The lengths of a row in words: "1.2 s", or nothing where it has not ended.
 * @param {Row} row
 */
export function lengthOf(row) {
    if (row.kind === "turn") return row.step.seconds;
    if (row.kind === "thinking") return null;
    const { call } = row;
    if (call.seconds !== null) return call.seconds;
    return call.finished_at !== null && call.sent_at !== null ? call.finished_at - call.sent_at : null;
}
