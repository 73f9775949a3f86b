// One response of the API as it grows: its events, gathered into the shown answer.

/** @import { ProgressDocument, ResponseDocument, ResponseUsage } from "beckon-api" */
/** @import { Item, ResponseEvent } from "beckon-streams" */

/** @typedef {Extract<ResponseEvent, { output_index: number }>} ItemEvent */

/**
 * @typedef {object} ShownItem
 * @property {string} id
 * @property {Item} item
 * @property {string} text
 * @property {ProgressDocument} [report] the tool's last
 * @property {number} [began] milliseconds, as measured here
 * @property {number} [seconds] as measured here
 */

/** @typedef {Pick<ResponseDocument, "id" | "status" | "usage" | "created_at" | "completed_at">} ResponseFields */
/** @typedef {Pick<ResponseDocument, "error" | "incomplete_details"> & { output: Item[] }} ResponseEnd */

/**
 * @typedef {object} Answer
 * @property {string} id
 * @property {ResponseDocument["status"]} status
 * @property {ShownItem[]} items
 * @property {ResponseUsage | null} usage
 * @property {string} error the run's
 * @property {string} reason why it was cut short
 * @property {number} number that of the last event
 * @property {Error | null} failure the request's
 * @property {boolean} resuming
 * @property {number} began
 * @property {number | null} seconds
 * @property {boolean} waits for a person
 * @property {boolean} stopping
 * @property {boolean} cancelled
 * @property {string} refusal of a decision
 * @property {Record<string, boolean>} decided by the ids of the requests
 */

const OVER = new Set(["completed", "incomplete", "failed", "cancelled"]);

/** @returns {Answer} */
export function newAnswer(id = "") {
    return {
        id,
        status: "queued",
        items: [],
        usage: null,
        error: "",
        reason: "",
        number: -1,
        failure: null,
        resuming: false,
        began: Date.now(),
        seconds: null,
        waits: false,
        stopping: false,
        cancelled: false,
        refusal: "",
        decided: {},
    };
}

/**
 * The answer that a stored response is.
 * @param {ResponseFields & ResponseEnd} response
 */
export function answerOf(response) {
    const answer = newAnswer(response.id);
    settle(answer, response);
    answer.seconds = response.completed_at ? response.completed_at - response.created_at : null;
    return answer;
}

/** @param {Answer} answer */
export function isOver(answer) {
    return OVER.has(answer.status);
}

/**
 * The questions that a response ends with: calls that a person has to allow.
 * @param {Answer} answer
 */
export function approvalsOf(answer) {
    return answer.items.filter((shown) => shown.item.type === "mcp_approval_request" && !isForm(shown));
}

/**
 * Whether an approval item is the form of a tool.
 * @param {ShownItem} shown
 */
export function isForm(shown) {
    return shown.item.id.startsWith("inreq_");
}

/**
 * Whether the answer ends with a question that a person has to decide.
 * @param {Answer} answer
 */
export function needsDecision(answer) {
    return answer.status === "completed" && approvalsOf(answer).length > 0;
}

/**
 * The text of the model, without its tool calls.
 * @param {Answer} answer
 */
export function textOf(answer) {
    return answer.items
        .filter((shown) => shown.item.type === "message")
        .map((shown) => shown.text)
        .join("\n\n");
}

/**
 * The pages that a message cites, each once. A scheme other than http could run a script in this page.
 * @param {Item} item
 * @returns {{ url: string, title: string }[]}
 */
export function citedPages(item) {
    const parts = item.type === "message" && item.role === "assistant" ? item.content : [];
    const pages = new Map();
    const cited = parts.flatMap((part) => (part.type === "output_text" ? part.annotations : []));
    for (const { url, title } of cited) {
        if (/^https?:/i.test(url) && !pages.has(url)) pages.set(url, { url, title: title || url });
    }
    return [...pages.values()];
}

/**
 * Takes one event of the stream.
 *
 * @param {Answer} answer
 * @param {ResponseEvent} event
 */
export function apply(answer, event) {
    if (typeof event.sequence_number === "number") answer.number = event.sequence_number;
    answer.resuming = false;
    switch (event.type) {
        case "response.created":
        case "response.queued":
        case "response.in_progress":
            answer.id = event.response.id;
            answer.status = event.response.status;
            break;
        case "response.completed":
        case "response.incomplete":
        case "response.failed":
            settle(answer, event.response);
            answer.seconds = (Date.now() - answer.began) / 1000;
            break;
        case "response.output_item.added":
            answer.status = "in_progress";
            answer.items[event.output_index] = shownOf(event.item);
            break;
        case "error":
            answer.error = event.message;
            break;
        default:
            if ("output_index" in event) changeItem(answer.items, event);
    }
}

/**
 * Takes an event of an item that was added before.
 *
 * @param {ShownItem[]} items
 * @param {ItemEvent} event
 */
function changeItem(items, event) {
    const shown = items[event.output_index];
    if (event.type === "response.output_item.done") {
        items[event.output_index] = { ...shownOf(event.item), began: shown?.began, seconds: since(shown) };
    }
    if (!shown) return;
    switch (event.type) {
        case "response.output_text.delta":
        case "response.refusal.delta":
        case "response.reasoning_text.delta":
            items[event.output_index] = { ...shown, text: shown.text + event.delta };
            break;
        case "response.mcp_call_arguments.done":
            if (shown.item.type === "mcp_call")
                items[event.output_index] = { ...shown, item: { ...shown.item, arguments: event.arguments } };
            break;
        case "beckon:mcp_call.progress": {
            const { progress, total, message } = event;
            items[event.output_index] = { ...shown, report: { progress, total, message } };
            break;
        }
    }
}

/**
 * The response at its end replaces what was streamed: an answer that was dropped is not in it.
 * @param {Answer} answer
 * @param {ResponseFields & ResponseEnd} response
 */
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

/**
 * @param {Item} item
 * @returns {ShownItem}
 */
function shownOf(item) {
    const parts = "content" in item ? item.content : [];
    const text = parts.map((part) => ("refusal" in part ? part.refusal : (part.text ?? ""))).join("");
    return { id: item.id, item, text, began: Date.now(), seconds: undefined };
}

/** @param {ShownItem | undefined} shown */
function since(shown) {
    return shown?.began ? (Date.now() - shown.began) / 1000 : undefined;
}
