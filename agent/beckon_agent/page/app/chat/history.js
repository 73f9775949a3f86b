// The turns of a conversation as the agent stored them.
import { get, statusOf } from "../api.js";
import { answerOf, isOver, needsDecision, newAnswer } from "./answer.js";
import { shownContent } from "./attachments.js";
import { listItems, runsOf } from "./conversations.js";

/** @import { RunCall, RunDocument } from "beckon-api" */
/** @import { Answer } from "./answer.js" */
/** @import { Content } from "./attachments.js" */

/** @typedef {{ key: string, run: string, question: Content, answers: Answer[], at: number | null }} Turn */

/** A response that holds items of a conversation. */
const STORED = {
    id: "",
    status: /** @type {const} */ ("completed"),
    usage: null,
    created_at: 0,
    completed_at: null,
    error: null,
    incomplete_details: null,
};

/**
 * Returns { turns, more }, the oldest first; `more` says whether earlier turns are left out.
 * @param {string} conversation
 * @returns {Promise<{ turns: Turn[], more: boolean }>}
 */
export async function readTurns(conversation) {
    const { runs, more } = await runsOf(conversation);
    const turns = runs.length ? await Promise.all(runs.map(readTurn)) : await plainTurns(conversation);
    const shown = turns.filter((turn, index) => !(turn && wasRepeated(turn, turns[index + 1])));
    return { turns: shown.filter((turn) => turn !== null), more };
}

const WITH_CALLS = { params: { "include[]": "mcp_call" } };

/**
 * @param {string} run
 * @returns {Promise<Turn | null>}
 */
async function readTurn(run) {
    try {
        const [first, input, found] = await Promise.all([
            get(`v1/responses/${run}`, WITH_CALLS),
            get(`v1/responses/${run}/input_items`, { params: { order: "desc", limit: 1 } }),
            get(`runs/${run}`),
        ]);
        const calls = callsOf(found);
        const message = input.data[0];
        const answers = [answerOf(first)];
        let last = answers[0];
        while (needsDecision(last)) {
            const next = await get(`v1/responses/${run}_${answers.length + 1}`, WITH_CALLS).catch(() => null);
            if (next === null) break;
            last = answerOf(next);
            answers.push(last);
        }
        enrich(answers, calls);
        if (!isOver(last)) {
            const waits = calls.some((call) => call.approval && call.approval.decision === null);
            answers[answers.length - 1] = { ...newAnswer(last.id), status: last.status, waits };
        }
        return {
            key: run,
            run,
            question: message?.type === "message" ? message.content : "",
            answers,
            at: first.created_at,
        };
    } catch (error) {
        if (statusOf(error) === 404) return null; // it was deleted
        throw error;
    }
}

/** @param {Pick<RunDocument, "steps">} run */
export function callsOf(run) {
    return run.steps.flatMap((step) => step.calls);
}

/**
 * Adds what the run knows and the response does not: how long each call took, and who was allowed to make it.
 * @param {Answer[]} answers
 * @param {RunCall[]} calls
 */
export function enrich(answers, calls) {
    const left = [...calls];
    for (const answer of answers) {
        for (const [index, shown] of answer.items.entries()) {
            const { item } = shown;
            const place = item.type === "mcp_call" ? left.findIndex((call) => call.name === item.name) : -1;
            if (place >= 0)
                answer.items[index] = { ...shown, seconds: left.splice(place, 1)[0].seconds ?? undefined };
            const decision = calls.find((call) => call.approval?.id === shown.id)?.approval?.decision;
            if (decision) answer.decided = { ...answer.decided, [shown.id]: decision === "approved" };
        }
    }
}

/**
 * The turns of a conversation that has items from a client, and no run of its own.
 * @param {string} id
 */
async function plainTurns(id) {
    /** @type {Turn[]} */
    const turns = [];
    for (const item of await listItems(`v1/conversations/${id}/items`)) {
        if (item.type === "message" && item.role === "user") {
            turns.push({ key: item.id, run: "", question: item.content, answers: [], at: null });
            continue;
        }
        const answers = turns.at(-1)?.answers;
        if (answers) {
            const output = [...(answers[0]?.items.map((shown) => shown.item) ?? []), item];
            answers[0] = answerOf({ ...STORED, output });
        }
    }
    return turns;
}

/**
 * @param {Turn} turn
 * @param {Turn | null | undefined} next
 */
function wasRepeated(turn, next) {
    const status = turn.answers.at(-1)?.status;
    const same =
        next && JSON.stringify(shownContent(next.question)) === JSON.stringify(shownContent(turn.question));
    return Boolean(same) && (status === "failed" || status === "cancelled");
}
