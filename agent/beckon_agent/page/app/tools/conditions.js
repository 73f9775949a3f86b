// The conditions of an EventType, each with its reason and what to do about it; and what surprises beside them.
import { html } from "../html.js";
import { Icon } from "../parts/icons.js";

const STATES = {
    True: { icon: "check", tone: "good", name: "yes" },
    False: { icon: "close", tone: "bad", name: "no" },
    Unknown: { icon: "question", tone: "plain", name: "not known" },
};
const MEANS = {
    Declared: "The EventType says enough to be called",
    Routed: "A call reaches the service",
    Answerable: "Replies find their way back",
    Available: "A call gets through now",
    Answering: "Its calls are answered",
    DeadLettered: "A call that cannot be delivered is told at once",
    Ready: "Models are offered it",
};

// What is missing here takes no tool away.
export const WARNINGS = new Set(["Available", "Answering", "DeadLettered"]);

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

export function Findings({ findings }) {
    if (findings.length === 0) return null;
    return html`<section class="card part" aria-labelledby="findings-title">
        <h2 id="findings-title">Worth a look</h2>
        <ul class="findings">${findings.map((one) => html`<li key=${one.kind + one.name + one.field + one.message}>
            <span class=${`badge badge-${one.severity === "error" ? "bad" : "warn"}`}>${one.severity}</span>
            <span><strong>${one.kind} ${one.name}</strong>${one.field && html` <code>${one.field}</code>`}: ${one.message}</span>
        </li>`)}</ul>
    </section>`;
}
