// What became of runs and calls, in a word and a tone.

const RUNS = {
    queued: { name: "Queued", tone: "busy" },
    running: { name: "Running", tone: "busy" },
    suspended: { name: "Waiting", tone: "warn" },
    completed: { name: "Done", tone: "good" },
    incomplete: { name: "Cut short", tone: "warn" },
    failed: { name: "Failed", tone: "bad" },
    cancelled: { name: "Stopped", tone: "plain" },
};

const CALLS = {
    open: { name: "About to be sent", tone: "busy" },
    approval: { name: "Waiting for you", tone: "warn" },
    sent: { name: "Under way", tone: "busy" },
    accepted: { name: "Answers later", tone: "busy" },
    client: { name: "The client's to make", tone: "plain" },
};

// What had no end when its run was over.
const LEFT = { open: "Never sent", approval: "Nobody decided", sent: "No answer came", accepted: "No answer came" };

const REASONS = {
    undeliverable: "Dead letter",
    timeout: "No answer in time",
    invalid_arguments: "Arguments refused",
    denied: "Denied",
    unknown_tool: "No such tool",
    outcome_unknown: "Outcome unknown",
};

const ENDINGS = {
    length: "the answer reached its token limit",
    step_limit: "the model was asked as often as one run may ask it",
    time_limit: "the run took as long as it may take",
    token_limit: "the run used as many tokens as it may use",
    content_filter: "the provider filtered the answer",
    incomplete: "the model's server ended its answer in the middle",
    client_call: "a call was handed to the client",
};

export const isOver = (run) => run.ended_at !== null;

export const stateOfRun = (run) => RUNS[run.status] ?? { name: run.status, tone: "plain" };

export function stateOfCall(call, run) {
    if (isOver(run) && call.state in LEFT) return { name: LEFT[call.state], tone: "plain" };
    if (call.state !== "done") return CALLS[call.state] ?? { name: call.state, tone: "plain" };
    if (!call.failed) return { name: "Done", tone: "good" };
    return { name: REASONS[call.reason] ?? "Failed", tone: call.reason === "denied" ? "warn" : "bad" };
}

/** What was asked, without the text files that came with it. */
export function questionOf({ question }) {
    if (!question) return "A run without a question";
    return question.replace(/\s*<file name=[^]*/, "") || "With a file";
}

export const endingOf = (run) => ENDINGS[run.ending] ?? "";
