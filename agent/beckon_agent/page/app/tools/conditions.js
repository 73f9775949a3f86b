// The conditions of an EventType, each with its reason and its cure; and the findings.
import { html } from "../html.js";
import { Icon } from "../parts/icons.js";

/** @import { Condition, Finding } from "beckon-api" */

/** @type {Record<Condition["status"], { icon: string, tone: string, name: string }>} */
const STATES = {
    True: { icon: "check", tone: "good", name: "yes" },
    False: { icon: "close", tone: "bad", name: "no" },
    Unknown: { icon: "question", tone: "plain", name: "not known" },
};
/** @type {Record<string, string>} */
const MEANS = {
    Declared: "The EventType has all that a call needs",
    Routed: "A call reaches the service",
    Answerable: "Replies come back",
    Available: "A call gets through now",
    RepliesArrive: "A probe of its Broker came back",
    Answering: "Its calls are answered",
    DeadLettered: "A call that cannot be delivered fails at once",
    Ready: "Models are offered it",
};

// What is missing here takes no tool away.
export const WARNINGS = new Set(["Available", "RepliesArrive", "Answering", "DeadLettered"]);

/** @param {{ conditions: Condition[] }} props */
export function Conditions({ conditions }) {
    return html`<ul class="conditions">${conditions.map((one) => {
        const state = STATES[one.status] ?? STATES.Unknown;
        const tone = one.status === "False" && WARNINGS.has(one.type) ? "warn" : state.tone;
        return html`<li key=${one.type} class=${`condition condition-${tone}`}>
            <span class="condition-mark"><${Icon} name=${state.icon} size="14" /></span>
            <div>
                <p class="condition-name">${one.type}<span class="unseen">: ${state.name}</span> <small>${MEANS[one.type] ?? ""}</small></p>
                ${(one.message || one.status !== "True") && html`<p class="condition-why">${one.status !== "True" && html`<strong>${one.reason}</strong>${one.message && ": "}`}${one.message}</p>`}
            </div>
        </li>`;
    })}</ul>`;
}

/** @param {{ findings: Finding[] }} props */
export function Findings({ findings }) {
    if (findings.length === 0) return null;
    return html`<section class="card part" aria-labelledby="findings-title">
        <h2 id="findings-title">Findings</h2>
        <ul class="findings">${findings.map(
            (one) => html`<li key=${one.kind + one.name + one.field + one.message}>
            <span class=${`badge badge-${one.severity === "error" ? "bad" : "warn"}`}>${one.severity}</span>
            <span><strong>${one.kind} ${one.name}</strong>${one.field && html` <code>${one.field}</code>`}: ${one.message}</span>
        </li>`,
        )}</ul>
    </section>`;
}
