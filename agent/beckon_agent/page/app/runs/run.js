// One run: its question, its outcome, its time line, its events, and its replay.
import { useEffect, useState } from "preact/hooks";
import { post, statusOf, toError } from "../api.js";
import { html } from "../html.js";
import { announceText } from "../live.js";
import { Icon } from "../parts/icons.js";
import { Busy, Empty, Notice } from "../parts/notice.js";
import { ago, duration } from "../parts/times.js";
import { href } from "../route.js";
import { useRun } from "./live.js";
import { Picture } from "./picture.js";
import { RunEvents } from "./raw.js";
import { Replay } from "./replay.js";
import { endingOf, isOver, keyOf, questionOf, stateOfRun } from "./states.js";

/** @import { RunDocument } from "beckon-api" */

/** @param {{ id: string }} props */
export function RunPage({ id }) {
    const { run, saying, now, problem, reload } = useRun(id);
    if (problem && statusOf(problem) === 404) {
        return html`<div class="page"><${Back} /><${Empty} icon="runs" title="There is no such run" text=${problem.message} /></div>`;
    }
    if (!run)
        return html`<div class="page"><${Back} />${problem ? html`<${Notice} text=${problem.message} />` : html`<${Busy} />`}</div>`;
    return html`<div class="page run">
        <${Back} />
        <${Head} run=${run} now=${now} onStopped=${reload} />
        ${problem && html`<${Notice} tone="warn" text=${problem.message} />`}
        ${run.error && html`<${Notice} title="The run failed" text=${run.error.message} />`}
        ${run.status === "incomplete" && html`<${Notice} tone="warn" title="The run was cut short" text=${`Because ${endingOf(run)}.`} />`}
        <${Body} run=${run} now=${now} saying=${saying} reload=${reload} />
    </div>`;
}

function Back() {
    return html`<a class="back" href=${href("runs")}><${Icon} name="back" size="16" />All runs</a>`;
}

/** @param {{ run: RunDocument, now: number, onStopped: () => void }} props */
function Head({ run, now, onStopped }) {
    const state = stateOfRun(run);
    const seconds = (run.ended_at ?? now) - run.created_at;
    const calls = run.steps.flatMap((step) => step.calls);
    const failed = calls.filter((call) => call.failed).length;
    return html`<header class="run-head">
        <h1>${questionOf(run)}</h1>
        <p class="run-state">
            <span class=${`badge badge-${state.tone}`}>${!isOver(run) && run.status !== "suspended" && html`<span class="dots" aria-hidden="true"><i /><i /><i /></span>`}${state.name}</span>
            <span>${run.agent}</span><span title=${new Date(run.created_at * 1000).toLocaleString()}>${ago(run.created_at, now)}</span>
        </p>
        <div class="run-sum"><dl class="run-facts">
            <div><dt>${isOver(run) ? "Took" : "So far"}</dt><dd>${duration(seconds)}</dd></div>
            <div><dt>Model requests</dt><dd>${run.steps.length}×</dd></div>
            <div><dt>Calls</dt><dd>${calls.length}${failed > 0 && html` <small>${failed} failed</small>`}</dd></div>
            <div><dt>Tokens</dt><dd>${run.usage ? run.usage.total_tokens.toLocaleString("en") : "–"}</dd></div>
            ${run.takeovers > 0 && html`<div><dt>Taken over</dt><dd>${run.takeovers}×</dd></div>`}
        </dl>
        <div class="deeds">
            ${run.conversation && html`<a class="button button-small" href=${href("chat", run.conversation)}><${Icon} name="chat" size="16" />Conversation</a>`}
            ${!isOver(run) && run.face === "responses" && html`<${Stop} run=${run} onStopped=${onStopped} />`}
        </div></div>
    </header>`;
}

/** @param {{ run: RunDocument, onStopped: () => void }} props */
function Stop({ run, onStopped }) {
    const [problem, setProblem] = useState("");
    const stop = async () => {
        try {
            await post(`v1/responses/${run.id}/cancel`);
            announceText("The run is stopped.");
            onStopped();
        } catch (error) {
            setProblem(toError(error).message);
        }
    };
    return html`<button class="button button-small" type="button" onClick=${stop}><${Icon} name="stop" size="16" />Stop</button>
        ${problem && html`<${Notice} text=${problem} />`}`;
}

/** @param {{ run: RunDocument, now: number, saying: string, reload: () => void }} props */
function Body({ run, now, saying, reload }) {
    const calls = isOver(run) ? [] : run.steps.flatMap((step) => step.calls);
    const waiting = calls.find((call) => call.state === "approval" || call.state === "input");
    const [open, setOpen] = useState("");
    const [raw, setRaw] = useState(false);
    // A call that waits for a person is open from the start.
    useEffect(() => {
        if (waiting) setOpen(keyOf(waiting));
    }, [waiting?.event_id]);
    const stamp = run.steps.map((step) => step.calls.map((call) => call.state).join()).join();
    return html`
        <section class="card line-card" aria-labelledby="line-title">
            <div class="line-top">
                <h2 id="line-title">Time line</h2>
                <${Legend} run=${run} />
                <button class="button button-small" type="button" aria-pressed=${raw} onClick=${() => setRaw(!raw)}>Raw events</button>
            </div>
            ${
                raw
                    ? html`<${RunEvents} run=${run.id} stamp=${stamp} />`
                    : html`<${Picture} run=${run} now=${now} saying=${saying} open=${open} onOpen=${setOpen} onDecided=${reload} />`
            }
        </section>
        ${isOver(run) && html`<${Replay} run=${run} />`}
    `;
}

const WAITING = new Set(["accepted", "input"]);

/** @param {{ run: RunDocument }} props */
function Legend({ run }) {
    const calls = run.steps.flatMap((step) => step.calls);
    const shown = [
        ["model", "model", true],
        ["good", "call", calls.some((call) => !call.failed && call.sent_at !== null)],
        ["bad", "failed call", calls.some((call) => call.failed)],
        ["waiting", "waiting", calls.some((call) => call.approval || WAITING.has(call.state))],
        ["lost", "sent by an agent that stopped", calls.some((call) => call.attempts > 1)],
        ["delivered", "delivered more than once", calls.some((call) => (call.deliveries ?? 0) > 1)],
        ["taken", "taken over by another process", run.takeovers > 0],
    ];
    return html`<ul class="legend" aria-hidden="true">
        ${shown.filter((one) => one[2]).map(([kind, name]) => html`<li key=${kind}><i class=${`swatch bar-${kind}`} />${name}</li>`)}
    </ul>`;
}
