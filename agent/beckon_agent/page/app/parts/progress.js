// The progress of a call: a bar, and the message of the tool.
import { html } from "../html.js";

/** @import { ProgressDocument } from "beckon-api" */

/**
 * `report` has the progress of a tool, and the total and a message if the tool sends them.
 * @param {{ report: ProgressDocument, label: string }} props
 */
export function Progress({ report, label }) {
    const { progress, total, message } = report;
    const known = typeof total === "number" && total > 0;
    const words = [known ? `${number(progress)} of ${number(total)}` : number(progress), message]
        .filter(Boolean)
        .join(" · ");
    return html`<div class="progress">
        <progress aria-label=${label} aria-valuetext=${words} max="1" value=${known ? Math.min(1, Math.max(0, progress / total)) : undefined}></progress>
        <span class="progress-words">${words}</span>
    </div>`;
}

/** @param {number} value */
function number(value) {
    return value.toLocaleString("en", { maximumFractionDigits: 2 });
}
