// One response of the API as it grows: what its events say, gathered into what is shown.

const OVER = new Set(["completed", "incomplete", "failed", "cancelled"]);

/** `number` is that of the last event; `failure` is an error of the request, `error` one of the run. */
export function newAnswer(id = "") {
    return {
        id, status: "queued", items: [], usage: null, error: "", reason: "", number: -1, failure: null,
        resuming: false, began: Date.now(), seconds: null,
    };
}

/** The answer that a stored response is. */
export function answerOf(response) {
    const answer = newAnswer(response.id);
    settle(answer, response);
    answer.seconds = response.completed_at ? response.completed_at - response.created_at : null;
    return answer;
}

export function isOver(answer) {
    return OVER.has(answer.status);
}

/** The questions that a response ends with: calls that a person has to allow. */
export function approvalsOf(answer) {
    return answer.items.filter((shown) => shown.type === "mcp_approval_request");
}

/** What the model said, without what its tools did. */
export function textOf(answer) {
    return answer.items.filter((shown) => shown.type === "message").map((shown) => shown.text).join("\n\n");
}

/** Takes one event of the stream. */
export function apply(answer, event) {
    if (typeof event.sequence_number === "number") answer.number = event.sequence_number;
    answer.resuming = false;
    READERS[event.type]?.(answer, event);
}

const READERS = {
    "response.created": progress,
    "response.queued": progress,
    "response.in_progress": progress,
    "response.completed": finish,
    "response.incomplete": finish,
    "response.failed": finish,
    "response.output_item.added": (answer, { output_index: index, item }) => {
        answer.status = "in_progress";
        answer.items[index] = shownOf(item);
    },
    "response.output_item.done": (answer, { output_index: index, item }) => {
        const before = answer.items[index];
        answer.items[index] = { ...shownOf(item), began: before?.began, seconds: since(before) };
    },
    "response.output_text.delta": grow,
    "response.reasoning_text.delta": grow,
    "response.mcp_call_arguments.done": (answer, event) => {
        const shown = answer.items[event.output_index];
        if (shown) answer.items[event.output_index] = { ...shown, item: { ...shown.item, arguments: event.arguments } };
    },
    "beckon:mcp_call.progress": (answer, { output_index: index, progress, total, message }) => {
        const shown = answer.items[index];
        if (shown) answer.items[index] = { ...shown, report: { progress, total, message } };
    },
    error: (answer, event) => { answer.error = event.message; },
};

function progress(answer, { response }) {
    answer.id = response.id;
    answer.status = response.status;
}

function grow(answer, { output_index: index, delta }) {
    const shown = answer.items[index];
    if (shown) answer.items[index] = { ...shown, text: shown.text + delta };
}

function finish(answer, { response }) {
    settle(answer, response);
    answer.seconds = (Date.now() - answer.began) / 1000;
}

/** The response at its end is the truth: what was begun and dropped again is not in it. */
function settle(answer, response) {
    const before = new Map(answer.items.filter(Boolean).map((shown) => [shown.id, shown]));
    answer.id = response.id;
    answer.status = response.status;
    answer.usage = response.usage;
    answer.reason = response.incomplete_details?.ending ?? response.incomplete_details?.reason ?? "";
    answer.error = response.error?.message ?? "";
    answer.items = response.output.map((item) => {
        const { began, seconds } = before.get(item.id) ?? {};
        return { ...shownOf(item), began, seconds };
    });
}

function shownOf(item) {
    const text = (item.content ?? []).map((part) => part.text ?? "").join("");
    return { id: item.id, type: item.type, item, text, began: Date.now(), seconds: undefined };
}

function since(shown) {
    return shown?.began ? (Date.now() - shown.began) / 1000 : undefined;
}
