// A call of a tool as a card in the flow: its arguments, its progress and its reply.
import { useState } from "preact/hooks";
import { html } from "../html.js";
import { Data, isShowy, Members } from "../parts/data.js";
import { Icon } from "../parts/icons.js";
import { Json, parsed } from "../parts/json.js";
import { Progress } from "../parts/progress.js";
import { isObject } from "../parts/rows.js";
import { duration } from "../parts/times.js";
import { href } from "../route.js";
import { WaitingForms } from "../runs/input-form.js";

/** @import { McpCallItem, RunCall } from "beckon-api" */
/** @import { ShownItem } from "./answer.js" */

const SHOWN = 90;
const DENIED = { name: "Denied", tone: "warn" };
const WAITING = { name: "Waiting for you", tone: "warn" };
// The beginning of the agent's report on a call that waits for a person's input, as in its event_log.py.
const NEEDS_INPUT = "needs input: ";
/** @type {Record<string, { name: string, tone: string }>} */
const STATES = {
    in_progress: { name: "Running", tone: "busy" },
    completed: { name: "Done", tone: "good" },
    failed: { name: "Failed", tone: "bad" },
    incomplete: { name: "Cut short", tone: "warn" },
};

/** @param {{ shown: ShownItem & { item: McpCallItem }, run: string }} props */
export function CallCard({ shown, run }) {
    const { item, seconds, report } = shown;
    const denied = detailsOf(item.error).reason === "denied";
    const waits = item.status === "in_progress" && report?.message?.startsWith(NEEDS_INPUT);
    const state = denied ? DENIED : waits ? WAITING : (STATES[item.status] ?? STATES.in_progress);
    const [chosen, choose] = useState(/** @type {boolean | null} */ (null));
    const open =
        chosen ??
        ((item.status === "failed" && !denied) || (item.status === "completed" && isShowy(item.output)));
    const words = argumentsInWords(item.arguments);
    return html`<section class=${`call call-${state.tone}`} aria-label=${`Call of ${item.name}`}>
        <button class="call-head" type="button" aria-expanded=${open} onClick=${() => choose(!open)}>
            <${Icon} name="tools" size="16" />
            <span class="call-name">${item.name}</span>
            <span class="call-words">${open ? "" : words}</span>
            <span class=${`badge badge-${state.tone}`}>
                ${state.tone === "busy" && html`<span class="dots" aria-hidden="true"><i /><i /><i /></span>`}${state.name}
            </span>
            ${seconds !== undefined && html`<span class="call-time">${duration(seconds)}</span>`}
            <span class=${`turning ${open ? "turned" : ""}`}><${Icon} name="down" size="16" /></span>
        </button>
        ${report && state.tone === "busy" && html`<${Progress} report=${report} label=${`Progress of ${item.name}`} />`}
        ${waits && run && html`<${WaitingForms} run=${run} name=${item.name} stamp=${report} />`}
        ${
            open &&
            html`<div class="call-body">
            ${words && html`<h3 class="call-part">Arguments</h3><${Members} value=${parsed(item.arguments)} label=${`Arguments of ${item.name}`} />`}
            ${originInWords(item["beckon:origin"]) && html`<p class="hint">${originInWords(item["beckon:origin"])}</p>`}
            <${Outcome} item=${item} />
            ${run && html`<p class="call-link"><a href=${href("runs", run)}>Events of this run</a></p>`}
        </div>`
        }
    </section>`;
}

/** @param {{ item: McpCallItem }} props */
function Outcome({ item }) {
    if (item.status === "failed")
        return html`<h3 class="call-part">Error</h3><${Failure} error=${item.error} />`;
    if (item.status !== "completed") return null;
    return html`<h3 class="call-part">Reply</h3><${Data} value=${item.output} label=${`Reply of ${item.name}`} />`;
}

/** @param {{ error: McpCallItem["error"] }} props */
function Failure({ error }) {
    const { message, reason, ...rest } = detailsOf(error);
    if (typeof message !== "string") return html`<${Json} value=${error?.content ?? error} label="Error" />`;
    return html`<div class="failure">
        <p>${message}</p>
        ${reason && html`<span class="badge badge-bad">${reason}</span>`}
        ${Object.keys(rest).length > 0 && html`<${Members} value=${rest} label="Details of the error" />`}
    </div>`;
}

/**
 * Returns the members of an error's content.
 *
 * @param {McpCallItem["error"]} error
 * @returns {Record<string, unknown>}
 */
function detailsOf(error) {
    return isObject(error?.content) ? error.content : {};
}

/**
 * The origin of a call that was read from text; nothing for a call of the API, the usual case.
 * @param {RunCall["origin"] | undefined} origin
 */
export function originInWords(origin) {
    if (origin === "recovered")
        return "Recovered: the model wrote this call into its answer instead of the API's tool calls.";
    return origin === "dialect" ? "Read from the model's text, in its dialect." : null;
}

/** @param {string} text */
export function argumentsInWords(text) {
    const value = parsed(text || "{}");
    if (typeof value !== "object" || value === null) return String(value);
    const words = Object.entries(value)
        .map(([name, one]) => `${name}: ${typeof one === "string" ? one : JSON.stringify(one)}`)
        .join(" · ");
    return words.length > SHOWN ? `${words.slice(0, SHOWN)}…` : words;
}
