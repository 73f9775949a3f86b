// The agents that answer here, and which of them was chosen.
import { computed, signal } from "@preact/signals";
import { get } from "./api.js";

const KEPT = "beckon.agent";
const AGAIN = 5000; // milliseconds between two looks

/** `null` until they are known. */
export const agents = signal(null);

const chosen = signal(localStorageItem());

/** The name of the agent that is asked: the one that was chosen, if it is still there, or the first. */
export const agent = computed(() => {
    const names = (agents.value ?? []).map((one) => one.id);
    return names.includes(chosen.value) ? chosen.value : names[0] ?? "";
});

export async function loadAgents() {
    const found = (await get("v1/models")).data;
    const names = (list) => (list ?? []).map((one) => one.id).join("\n");
    // What is the same is left alone: a list that somebody has opened would close.
    if (agents.value === null || names(found) !== names(agents.value)) agents.value = found;
}

/** Looks again and again for agents that have come or gone, as long as somebody looks; returns how to end it. */
export function followAgents() {
    const timer = setInterval(() => {
        if (!document.hidden) loadAgents().catch(() => {}); // those that are known stay
    }, AGAIN);
    return () => clearInterval(timer);
}

export function chooseAgent(name) {
    chosen.value = name;
    try {
        localStorage.setItem(KEPT, name);
    } catch {
        // Chosen until the page is closed, then.
    }
}

function localStorageItem() {
    try {
        return localStorage.getItem(KEPT) ?? "";
    } catch {
        return "";
    }
}
