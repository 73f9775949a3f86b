// The visitor's conversations, as the agent lists them.
import { signal } from "@preact/signals";
import { get, post, remove } from "../api.js";
import { caller } from "../session.js";

const PAGE = 30;
const RUNS_KEY = "runs.";
// An id without its prefix has 32 characters; a value of metadata holds 512.
const IDS_A_VALUE = 15;
const MOST_ITEMS = 20; // the API's own limit for one request
const MOST_READ = 100;

const UNKNOWN = { data: null, more: false, last: "", query: "", error: "" };

/** { data, more, last, query, error }; `data` is null until the list has come, `last` is where it goes on. */
export const list = signal(UNKNOWN);
caller.subscribe(() => { list.value = UNKNOWN; });

/** Titles of conversations that the agent cannot know yet: their first question is still being answered. */
const provisional = new Map();

export function titleOf(conversation) {
    const { id, metadata, title = "" } = conversation;
    // A text file that came with the question stands in it, and is no title.
    const asked = title.replace(/\s*<file name=[^]*/, "");
    return metadata?.title || asked || provisional.get(id) || (title ? "With a file" : "New conversation");
}

export function titleOfId(id) {
    return titleOf(list.value.data?.find((one) => one.id === id) ?? { id });
}

export function entitle(id, text) {
    provisional.set(id, text.trim().replace(/\s+/g, " ").slice(0, 80));
}

/** Reads the list anew, or with `more` the page behind what is there. */
export async function refresh({ query = list.value.query, more = false } = {}) {
    const { data: known, last } = more ? list.value : { data: [], last: undefined };
    list.value = { ...list.value, query };
    try {
        const page = await get("v1/conversations", { params: { query, limit: PAGE, after: last } });
        if (list.value.query !== query) return; // something else is asked for by now
        list.value = { data: [...known, ...page.data], more: page.has_more, last: page.last_id, query, error: "" };
    } catch (error) {
        list.value = { ...list.value, data: list.value.data ?? [], error: error.message };
    }
}

export async function open(metadata = {}) {
    return (await post("v1/conversations", { metadata })).id;
}

export async function close(id) {
    await remove(`v1/conversations/${id}`);
    list.value = { ...list.value, data: list.value.data?.filter((one) => one.id !== id) ?? null };
}

/** Returns { runs, more }: the ids of the runs that a conversation shows, the oldest first; `more` came before. */
export async function runsOf(id) {
    const { metadata } = await get(`v1/conversations/${id}`);
    const own = await get("runs", { params: { conversation: id, limit: MOST_READ } });
    const earlier = own.has_more ? [] : unpacked(metadata);
    const runs = [...earlier, ...own.data.map((run) => run.id).reverse()].filter((run) => run.startsWith("resp_"));
    return { runs: runs.slice(-MOST_READ), more: own.has_more || runs.length > MOST_READ };
}

/**
 * Opens a conversation that begins as another one did before one of its runs; returns its id.
 *
 * What was said is copied for the model; the runs in which it was said are kept by their ids, for the page.
 */
export async function branch(before, run) {
    const items = before.length ? await said(`v1/responses/${run}/input_items`) : [];
    const id = await open(packed(before));
    const earlier = items.slice(0, -1); // the last is the question of the run itself
    for (let start = 0; start < earlier.length; start += MOST_ITEMS) {
        await post(`v1/conversations/${id}/items`, { items: earlier.slice(start, start + MOST_ITEMS) });
    }
    return id;
}

/** All items of a list, the oldest first. */
export async function said(path) {
    const items = [];
    for (let after, more = true; more; after = items.at(-1)?.id) {
        const page = await get(path, { params: { order: "asc", limit: MOST_READ, after } });
        items.push(...page.data);
        more = page.has_more;
    }
    return items;
}

function packed(runs) {
    const ids = runs.map((run) => run.replace("resp_", ""));
    const metadata = {};
    for (let start = 0; start < ids.length; start += IDS_A_VALUE) {
        metadata[`${RUNS_KEY}${start / IDS_A_VALUE}`] = ids.slice(start, start + IDS_A_VALUE).join(",");
    }
    return metadata;
}

function unpacked(metadata) {
    const found = [];
    for (let value, index = 0; (value = metadata?.[`${RUNS_KEY}${index}`]); index += 1) {
        found.push(...value.split(",").map((id) => `resp_${id}`));
    }
    return found;
}
