// The user: a key or token for this tab alone, and whether the agent wants one.
import { signal } from "@preact/signals";

const STORAGE_KEY = "beckon.key";

export const key = signal(read());

/** The message of the agent that needs a key; empty while it needs none. */
export const wanted = signal("");

/** Counts sign-ins: what a view shows for one caller must not stay for the next. */
export const caller = signal(0);

/** @param {string} value */
export function signIn(value) {
    key.value = value;
    try {
        sessionStorage.setItem(STORAGE_KEY, value);
    } catch {
        // Memory stores it, until the page is loaded again.
    }
    wanted.value = "";
    caller.value += 1;
}

export function signOut() {
    key.value = "";
    try {
        sessionStorage.removeItem(STORAGE_KEY);
    } catch {
        // Nothing was stored.
    }
    caller.value += 1;
}

function read() {
    try {
        return sessionStorage.getItem(STORAGE_KEY) ?? "";
    } catch {
        return "";
    }
}
