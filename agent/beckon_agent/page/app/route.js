// Where the visitor is: #/VIEW/PART/…?name=value, so that every place has an address and Back works.
import { signal } from "@preact/signals";

/** @typedef {{ view: string, parts: string[], query: URLSearchParams }} Route */

const HOME = "chat";

export const route = signal(parse(location.hash));

addEventListener("hashchange", () => {
    route.value = parse(location.hash);
});

/**
 * The address of a place, for a link.
 * @param {string} view
 * @param {string[]} parts
 */
export function href(view, ...parts) {
    return `#/${[view, ...parts].map(encodeURIComponent).join("/")}`;
}

/**
 * Goes to a place; with `replace` Back does not lead here again.
 * @param {string} address
 * @param {{ replace?: boolean }} [options]
 */
export function go(address, { replace = false } = {}) {
    if (location.hash === address) return;
    history[replace ? "replaceState" : "pushState"](null, "", address);
    route.value = parse(address);
}

/**
 * @param {string} hash
 * @returns {Route}
 */
function parse(hash) {
    const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
    const [view, ...parts] = path.split("/").filter(Boolean).map(decoded);
    return { view: view ?? HOME, parts, query: new URLSearchParams(query) };
}

/** @param {string} part */
function decoded(part) {
    try {
        return decodeURIComponent(part);
    } catch {
        return part;
    }
}
