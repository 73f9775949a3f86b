// The states of runs and calls, each as a word and a tone.

/** @import { RunCall, RunDocument, RunListItem } from "beckon-api" */

/** @typedef {{ name: string, tone: "good" | "bad" | "warn" | "busy" | "plain" }} State */

/** @type {Record<string, State>} */
const RUNS = {
    queued: { name: "Queued", tone: "busy" },
    running: { name: "Running", tone: "busy" },
    suspended: { name: "Waiting", tone: "warn" },
    completed: { name: "Done", tone: "good" },
    incomplete: { name: "Cut short", tone: "warn" },
    failed: { name: "Failed", tone: "bad" },
    cancelled: { name: "Stopped", tone: "plain" },
};

/** @type {Record<string, State>} */
const CALLS = {
    open: { name: "About to be sent", tone: "busy" },
    approval: { name: "Waiting for you", tone: "warn" },
    input: { name: "Waiting for you", tone: "warn" },
    sent: { name: "In progress", tone: "busy" },
    accepted: { name: "Answers later", tone: "busy" },
    client: { name: "For the client", tone: "plain" },
};

// What had no end when its run was over.
/** @type {Record<string, string>} */
const LEFT = {
    open: "Never sent",
    approval: "No decision",
    input: "No answer came",
    sent: "No answer came",
    accepted: "No answer came",
};

/** @type {Record<string, string>} */
const REASONS = {
    undeliverable: "Dead letter",
    timeout: "No answer in time",
    invalid_arguments: "Arguments refused",
    denied: "Denied",
    unknown_tool: "No such tool",
    outcome_unknown: "Outcome unknown",
};

/** @type {Record<string, string>} */
const ENDINGS = {
    length: "the answer reached its token limit",
    step_limit: "the run reached its step limit",
    time_limit: "the run reached its time limit",
    token_limit: "the run reached its token limit",
    content_filter: "the provider filtered the answer",
    incomplete: "the model's server ended its answer in the middle",
    client_call: "a call was handed to the client",
};

/**
 * The key of a call's row. The event of a call that is sent again with a person's input has the same id with a
 * number.
 *
 * @param {Pick<RunCall, "event_id">} call
 */
export const keyOf = (call) => call.event_id.replace(/~\d+$/, "");

/** @param {Pick<RunDocument, "ended_at">} run */
export const isOver = (run) => run.ended_at !== null;

/**
 * @param {Pick<RunDocument, "status">} run
 * @returns {State}
 */
export const stateOfRun = (run) => RUNS[run.status] ?? { name: run.status, tone: "plain" };

/**
 * @param {RunCall} call
 * @param {Pick<RunDocument, "ended_at">} run
 * @returns {State}
 */
export function stateOfCall(call, run) {
    if (isOver(run) && call.state in LEFT) return { name: LEFT[call.state], tone: "plain" };
    if (call.state !== "done") return CALLS[call.state] ?? { name: call.state, tone: "plain" };
    if (!call.failed) return { name: "Done", tone: "good" };
    return {
        name: REASONS[String(call.reason)] ?? "Failed",
        tone: call.reason === "denied" ? "warn" : "bad",
    };
}

/**
 * The question, without its text files.
 * @param {Pick<RunDocument | RunListItem, "question">} run
 */
export function questionOf({ question }) {
    if (!question) return "A run without a question";
    return question.replace(/\s*<file name=.*/s, "") || "With a file";
}

/** @param {Pick<RunDocument, "ending">} run */
export const endingOf = (run) => ENDINGS[run.ending ?? ""] ?? "";
