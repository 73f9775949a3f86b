// JSON as a person reads it: indented, wrapped, and scrolled where it is long.
import { parseJson } from "../exact-json.js";
import { html } from "../html.js";

/** @param {{ value: unknown, label: string }} props */
export function Json({ value, label }) {
    return html`<pre class="json" tabindex="0" role="region" aria-label=${label}>${shown(value)}</pre>`;
}

/**
 * The value of a text that is JSON; the text itself where it is none.
 * @param {unknown} text
 */
export function parsed(text) {
    if (typeof text !== "string") return text;
    try {
        return parseJson(text);
    } catch {
        return text;
    }
}

/** @param {unknown} value */
function shown(value) {
    return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
