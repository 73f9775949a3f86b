// Who asks: a key or token for this tab alone, and whether the agent wants one.
import { signal } from "@preact/signals";

const KEPT = "beckon.key";

export const key = signal(read());

/** What the agent said when it asked for a key; empty while it asks for none. */
export const wanted = signal("");

/** Counts sign-ins: what a view shows for one caller must not stay for the next. */
export const caller = signal(0);

export function signIn(value) {
    key.value = value;
    try {
        sessionStorage.setItem(KEPT, value);
    } catch {
        // It is kept in memory, until the page is loaded again.
    }
    wanted.value = "";
    caller.value += 1;
}

export function signOut() {
    key.value = "";
    try {
        sessionStorage.removeItem(KEPT);
    } catch {
        // Nothing was kept.
    }
    caller.value += 1;
}

function read() {
    try {
        return sessionStorage.getItem(KEPT) ?? "";
    } catch {
        return "";
    }
}
