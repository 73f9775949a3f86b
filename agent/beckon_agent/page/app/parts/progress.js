// How far something is: a bar, and the words of who works on it.
import { html } from "../html.js";

/** `report` is what a tool says: so much is done, of so much if anybody knows, and perhaps a sentence. */
export function Progress({ report, label }) {
    const { progress, total, message } = report;
    const known = typeof total === "number" && total > 0;
    const words = [known ? `${number(progress)} of ${number(total)}` : number(progress), message].filter(Boolean).join(" · ");
    return html`<div class="progress">
        <progress aria-label=${label} aria-valuetext=${words} max="1" value=${known ? Math.min(1, Math.max(0, progress / total)) : undefined}></progress>
        <span class="progress-words">${words}</span>
    </div>`;
}

function number(value) {
    return value.toLocaleString("en", { maximumFractionDigits: 2 });
}
