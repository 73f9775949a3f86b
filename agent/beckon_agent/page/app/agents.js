// The agents that answer here, and which of them was chosen.
import { computed, signal } from "@preact/signals";
import { get } from "./api.js";

/** @import { ModelDocument } from "beckon-api" */

const STORAGE_KEY = "beckon.agent";
const REFRESH_PAUSE = 5000; // milliseconds between two looks

/** `null` until they are known. */
export const agents = signal(/** @type {ModelDocument[] | null} */ (null));

const chosen = signal(localStorageItem());

/** The name of the agent for new questions: the chosen one, if it is still there, or the first. */
export const agent = computed(() => {
    const names = (agents.value ?? []).map((one) => one.id);
    return names.includes(chosen.value) ? chosen.value : (names[0] ?? "");
});

export async function loadAgents() {
    const found = (await get("v1/models")).data;
    // An equal list is not replaced: an open choice would close.
    if (agents.value === null || namesOf(found) !== namesOf(agents.value)) agents.value = found;
}

/** @param {ModelDocument[]} list */
const namesOf = (list) => list.map((one) => one.id).join("\n");

/** Refreshes the agents while the page is visible; returns a function that ends it. */
export function followAgents() {
    const timer = setInterval(() => {
        if (!document.hidden) {
            loadAgents().catch(() => {
                // The agents that are known stay.
            });
        }
    }, REFRESH_PAUSE);
    return () => clearInterval(timer);
}

/** @param {string} name */
export function chooseAgent(name) {
    chosen.value = name;
    try {
        localStorage.setItem(STORAGE_KEY, name);
    } catch {
        // Chosen until the page is closed, then.
    }
}

function localStorageItem() {
    try {
        return localStorage.getItem(STORAGE_KEY) ?? "";
    } catch {
        return "";
    }
}
