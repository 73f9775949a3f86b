// A call of a tool as a card in the flow: what was asked, how far it is, and what came back.
import { useState } from "preact/hooks";
import { html } from "../html.js";
import { Data, Members, isShowy } from "../parts/data.js";
import { Icon } from "../parts/icons.js";
import { Json, parsed } from "../parts/json.js";
import { Progress } from "../parts/progress.js";
import { duration } from "../parts/times.js";
import { href } from "../route.js";

const SHOWN = 90;
const STATES = {
    in_progress: { name: "Running", tone: "busy" },
    completed: { name: "Done", tone: "good" },
    failed: { name: "Failed", tone: "bad" },
    incomplete: { name: "Cut short", tone: "warn" },
};

export function CallCard({ shown, run }) {
    const { item, seconds, report } = shown;
    const denied = item.error?.content?.reason === "denied";
    const state = denied ? { name: "Denied", tone: "warn" } : STATES[item.status] ?? STATES.in_progress;
    const [chosen, choose] = useState(null);
    const open = chosen ?? ((item.status === "failed" && !denied) || (item.status === "completed" && isShowy(item.output)));
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
        ${open && html`<div class="call-body">
            ${words && html`<h3 class="call-part">Arguments</h3><${Members} value=${parsed(item.arguments)} label=${`Arguments of ${item.name}`} />`}
            ${originInWords(item["beckon:origin"]) && html`<p class="hint">${originInWords(item["beckon:origin"])}</p>`}
            <${Outcome} item=${item} />
            ${run && html`<p class="call-link"><a href=${href("runs", run)}>Events of this run</a></p>`}
        </div>`}
    </section>`;
}

function Outcome({ item }) {
    if (item.status === "failed") return html`<h3 class="call-part">Error</h3><${Failure} error=${item.error} />`;
    if (item.status !== "completed") return null;
    return html`<h3 class="call-part">Reply</h3><${Data} value=${item.output} label=${`Reply of ${item.name}`} />`;
}

function Failure({ error }) {
    const said = error?.content ?? error;
    if (typeof said?.message !== "string") return html`<${Json} value=${said} label="Error" />`;
    const { message, reason, ...rest } = said;
    return html`<div class="failure">
        <p>${message}</p>
        ${reason && html`<span class="badge badge-bad">${reason}</span>`}
        ${Object.keys(rest).length > 0 && html`<${Members} value=${rest} label="Details of the error" />`}
    </div>`;
}

/** The origin of a call that was read from text; nothing for a call of the API, the usual case. */
export function originInWords(origin) {
    if (origin === "recovered") return "Recovered: the model wrote this call into its answer instead of the API's tool calls.";
    return origin === "dialect" ? "Read from the model's text, in the dialect that it speaks." : null;
}

export function argumentsInWords(text) {
    const value = parsed(text || "{}");
    if (typeof value !== "object" || value === null) return String(value);
    const words = Object.entries(value).map(([name, one]) => `${name}: ${typeof one === "string" ? one : JSON.stringify(one)}`).join(" · ");
    return words.length > SHOWN ? `${words.slice(0, SHOWN)}…` : words;
}
