// The details of one row of a time line: an answer of the model, or a call with both of its events.
import { useState } from "preact/hooks";
import { post, toError } from "../api.js";
import { originInWords } from "../chat/call.js";
import { html } from "../html.js";
import { announceText } from "../live.js";
import { CopyButton } from "../parts/copy.js";
import { Data, Members } from "../parts/data.js";
import { Json } from "../parts/json.js";
import { Markdown } from "../parts/markdown.js";
import { Notice } from "../parts/notice.js";
import { Progress } from "../parts/progress.js";
import { isObject } from "../parts/rows.js";
import { duration } from "../parts/times.js";
import { href } from "../route.js";
import { InputForm } from "./input-form.js";
import { CallEvents } from "./raw.js";
import { isOver, stateOfCall } from "./states.js";

/** @import { ApprovalState, RunCall, RunDocument, RunStep } from "beckon-api" */
/** @import { State } from "./states.js" */

/** @param {{ step?: RunStep, saying: string }} props */
export function TurnDetails({ step, saying }) {
    if (!step) {
        return html`<div class="details">
            ${saying ? html`<${Markdown} text=${saying} />` : html`<p class="hint">The model has not written anything yet.</p>`}
        </div>`;
    }
    const facts = {
        Model: step.model ?? "not recorded",
        Took: step.seconds === null ? "not recorded" : duration(step.seconds),
        Tokens: step.usage ? `${step.usage.input_tokens} in, ${step.usage.output_tokens} out` : "not counted",
        "Tools it was sent": step.tools_sent.join(", ") || "none",
    };
    return html`<div class="details">
        ${step.reasoning && html`<details class="reasoning"><summary>Reasoning</summary><p>${step.reasoning}</p></details>`}
        ${step.text ? html`<${Markdown} text=${step.text} />` : html`<p class="hint">No text; the model requested ${calls(step.calls.length)}.</p>`}
        ${step.cut && html`<p class="hint">Long texts are cut here; the response holds all of it.</p>`}
        <${Members} value=${facts} label="About this answer" />
    </div>`;
}

/** @type {Record<string, string>} */
const ANSWERS = { accept: "Answered.", decline: "Declined.", cancel: "Closed." };

/** @param {number} number */
const calls = (number) => (number === 1 ? "a call" : `${number} calls`);

/** @param {{ call: RunCall, run: RunDocument, onDecided: () => void }} props */
export function CallDetails({ call, run, onDecided }) {
    const [view, setView] = useState("Call");
    const state = stateOfCall(call, run);
    return html`<div class="details">
        <div class="details-top">
            <div class="switch" role="group" aria-label="What is shown of the call">
                ${["Call", "Raw events"].map(
                    (name) => html`
                    <button key=${name} type="button" aria-pressed=${view === name} onClick=${() => setView(name)}>${name}</button>`,
                )}
            </div>
            <a href=${href("tools", call.name)}>The tool ${call.name}</a>
        </div>
        ${call.state === "approval" && !isOver(run) && call.approval && html`<${ApprovalQuestion} name=${call.name} id=${call.approval.id} onDecided=${onDecided} />`}
        ${call.state === "input" && !isOver(run) && call.input?.id && html`<${InputForm} name=${call.name} id=${call.input.id} message=${call.input.message} schema=${call.input.schema} onAnswered=${onDecided} />`}
        ${
            view === "Call"
                ? html`<${Call} call=${call} state=${state} />`
                : html`<${CallEvents} run=${run.id} call=${call} />`
        }
    </div>`;
}

/** @param {{ call: RunCall, state: State }} props */
function Call({ call, state }) {
    return html`
        ${call.dead_letter && html`<${Notice} title="The call could not be delivered" text=${call.dead_letter} />`}
        <div class="details-both">
            <section><h3>Arguments</h3>
                ${Object.keys(call.arguments ?? {}).length ? html`<${Members} value=${call.arguments} label=${`Arguments of ${call.name}`} />` : html`<p class="hint">None.</p>`}
            </section>
            <section><h3>${call.failed ? "Error" : "Reply"}</h3><${Came} call=${call} state=${state} /></section>
        </div>
        <dl class="facts">
            <div><dt>State</dt><dd>${state.name}</dd></div>
            ${call.approval?.decision && html`<div><dt>Approval</dt><dd>${decided(call.approval)}</dd></div>`}
            ${call.input?.action && html`<div><dt>Input</dt><dd>${call.input.message} ${ANSWERS[call.input.action]}</dd></div>`}
            ${originInWords(call.origin) && html`<div><dt>Origin</dt><dd>${originInWords(call.origin)}</dd></div>`}
            <div><dt>Sent</dt><dd>${sent(call)}</dd></div>
            ${call.deliveries !== null && call.deliveries > 1 && html`<div><dt>Delivered</dt><dd>${call.deliveries} times: the Broker tried again, or repeated it; the tool's reply says so</dd></div>`}
            <div><dt>Event</dt><dd class="event-id"><code>${call.event_id}</code><${CopyButton} text=${call.event_id} label="Copy the event's id" /></dd></div>
        </dl>
        ${call.cut && html`<p class="hint">Long values are cut here; the raw events hold more.</p>`}
    `;
}

/** @param {{ call: RunCall, state: State }} props */
function Came({ call, state }) {
    if (call.state !== "done" && call.report)
        return html`<${Progress} report=${call.report} label=${`Progress of ${call.name}`} />`;
    if (call.state !== "done") return html`<p class="hint">${state.name}.</p>`;
    if (call.failed) {
        const { message, ...rest } = errorIn(call.result);
        if (call.dead_letter) return html`<p class="hint">No reply came: the reason is above.</p>`;
        if (!message) return html`<${Json} value=${call.result} label=${`Error of ${call.name}`} />`;
        return html`<p>${message}</p><${Members} value=${rest} label=${`Error of ${call.name}`} />`;
    }
    return html`<${Data} value=${call.result} label=${`Reply of ${call.name}`} />`;
}

/**
 * Returns the members of a result's error.
 *
 * @param {unknown} result
 */
function errorIn(result) {
    return isObject(result) && isObject(result.error) ? result.error : {};
}

/** @param {ApprovalState} approval */
function decided({ decision, by, reason }) {
    return [decision, by && `by ${by}`, reason && `: ${reason}`].filter(Boolean).join(" ").replace(" :", ":");
}

/** @param {RunCall} call */
function sent(call) {
    if (call.attempts === 0 || call.sent_at === null) return "never";
    const at = new Date(call.sent_at * 1000).toLocaleTimeString();
    return call.attempts === 1
        ? `at ${at}`
        : `${call.attempts} times, the last time at ${at}: an agent stopped before the reply came`;
}

/** @param {{ name: string, id: string, onDecided: () => void }} props */
function ApprovalQuestion({ name, id, onDecided }) {
    const [problem, setProblem] = useState("");
    const [busy, setBusy] = useState(false);
    /** @param {boolean} approve */
    const decide = async (approve) => {
        setBusy(true);
        try {
            await post(`approvals/${encodeURIComponent(id)}`, { approve });
            announceText(approve ? `${name} is approved.` : `${name} is denied.`);
            setProblem("");
            onDecided();
        } catch (error) {
            setProblem(toError(error).message);
        }
        setBusy(false);
    };
    return html`<div class="approval-question" role="group" aria-label=${`Approval of ${name}`}>
        <p><strong>${name}</strong> needs your approval.</p>
        <button class="button button-strong button-small" type="button" disabled=${busy} onClick=${() => decide(true)}>Approve</button>
        <button class="button button-small" type="button" disabled=${busy} onClick=${() => decide(false)}>Deny</button>
        ${problem && html`<${Notice} text=${problem} />`}
    </div>`;
}
