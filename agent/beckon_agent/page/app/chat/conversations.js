// The visitor's conversations, as the agent lists them.
import { signal } from "@preact/signals";
import { get, post, remove, toError } from "../api.js";
import { caller } from "../session.js";

/** @import { ItemPage, ListedConversation } from "beckon-api" */

const PAGE = 30;
const RUNS_KEY = "runs.";
// An id without its prefix has 32 characters; a value of metadata holds 512.
const IDS_A_VALUE = 15;
const MOST_ITEMS = 20; // the API's own limit for one request
const MOST_READ = 100;

/** @typedef {{ data: ListedConversation[] | null, more: boolean, last: string, query: string, error: string }} List */
/** @typedef {{ id: string, metadata?: Record<string, string>, title?: string }} Titled */

/** @type {List} */
const UNKNOWN = { data: null, more: false, last: "", query: "", error: "" };

/** { data, more, last, query, error }; `data` is null until the list has come, `last` is where it goes on. */
export const list = signal(UNKNOWN);
caller.subscribe(() => {
    list.value = UNKNOWN;
});

/**
 * Titles of conversations that the agent cannot know yet: their first question is still being answered.
 *
 * @type {Map<string, string>}
 */
const provisional = new Map();

/** @param {Titled} conversation */
export function titleOf(conversation) {
    const { id, metadata, title = "" } = conversation;
    // The question contains its text files, which are no title.
    const question = title.replace(/\s*<file name=.*/s, "");
    return metadata?.title || question || provisional.get(id) || (title ? "With a file" : "New conversation");
}

/** @param {string} id */
export function titleOfId(id) {
    return titleOf(list.value.data?.find((one) => one.id === id) ?? { id });
}

/**
 * @param {string} id
 * @param {string} text
 */
export function setTitle(id, text) {
    provisional.set(id, text.trim().replace(/\s+/g, " ").slice(0, 80));
}

/**
 * Reads the list anew, or with `more` the page behind what is there.
 * @param {{ query?: string, more?: boolean }} [options]
 */
export async function refresh({ query = list.value.query, more = false } = {}) {
    const known = more ? (list.value.data ?? []) : [];
    const last = more ? list.value.last : undefined;
    list.value = { ...list.value, query };
    try {
        const page = await get("v1/conversations", { params: { query, limit: PAGE, after: last } });
        if (list.value.query !== query) return; // the search has changed
        list.value = {
            data: [...known, ...page.data],
            more: page.has_more,
            last: page.last_id,
            query,
            error: "",
        };
    } catch (error) {
        list.value = { ...list.value, data: list.value.data ?? [], error: toError(error).message };
    }
}

/** @param {Record<string, string>} [metadata] */
export async function open(metadata = {}) {
    return (await post("v1/conversations", { metadata })).id;
}

/** @param {string} id */
export async function close(id) {
    await remove(`v1/conversations/${id}`);
    list.value = { ...list.value, data: list.value.data?.filter((one) => one.id !== id) ?? null };
}

/**
 * Returns { runs, more }: the ids of the runs that a conversation shows, the oldest first; `more` came before.
 * @param {string} id
 */
export async function runsOf(id) {
    const { metadata } = await get(`v1/conversations/${id}`);
    const own = await get("runs", { params: { conversation: id, limit: MOST_READ } });
    const earlier = own.has_more ? [] : unpacked(metadata);
    const runs = [...earlier, ...own.data.map((run) => run.id).reverse()].filter((run) =>
        run.startsWith("resp_"),
    );
    return { runs: runs.slice(-MOST_READ), more: own.has_more || runs.length > MOST_READ };
}

/**
 * Opens a conversation that begins as another one did before one of its runs; returns its id.
 *
 * Its items are copied for the model; the ids of its runs are stored for the page.
 * @param {string[]} before
 * @param {string} run
 */
export async function branch(before, run) {
    const items = before.length ? await listItems(`v1/responses/${run}/input_items`) : [];
    const id = await open(packed(before));
    const earlier = items.slice(0, -1); // the last is the question of the run itself
    for (let start = 0; start < earlier.length; start += MOST_ITEMS) {
        await post(`v1/conversations/${id}/items`, { items: earlier.slice(start, start + MOST_ITEMS) });
    }
    return id;
}

/**
 * All items of a list, the oldest first.
 * @param {`v1/responses/${string}/input_items` | `v1/conversations/${string}/items`} path
 */
export async function listItems(path) {
    /** @type {ItemPage["data"]} */
    const items = [];
    for (let more = true; more; ) {
        const after = items.at(-1)?.id;
        const page = await get(path, { params: { order: "asc", limit: MOST_READ, after } });
        items.push(...page.data);
        more = page.has_more;
    }
    return items;
}

/** @param {string[]} runs */
function packed(runs) {
    const ids = runs.map((run) => run.replace("resp_", ""));
    /** @type {Record<string, string>} */
    const metadata = {};
    for (let start = 0; start < ids.length; start += IDS_A_VALUE) {
        metadata[`${RUNS_KEY}${start / IDS_A_VALUE}`] = ids.slice(start, start + IDS_A_VALUE).join(",");
    }
    return metadata;
}

/** @param {Record<string, string>} metadata */
function unpacked(metadata) {
    const found = [];
    for (let index = 0; metadata?.[`${RUNS_KEY}${index}`]; index += 1) {
        found.push(...metadata[`${RUNS_KEY}${index}`].split(",").map((id) => `resp_${id}`));
    }
    return found;
}
