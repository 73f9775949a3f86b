// A run played again: as it was recorded, or with the tools of today; and where it differs.
import { useEffect, useRef, useState } from "preact/hooks";
import { events } from "../api.js";
import { html } from "../html.js";
import { announce } from "../live.js";
import { Icon } from "../parts/icons.js";
import { Busy, Notice } from "../parts/notice.js";

const IDLE = { busy: false, calls: [], report: null, problem: null, wish: null };

export function Replay({ run }) {
    const [state, setState] = useState(IDLE);
    const asking = useRef(null);
    useEffect(() => () => asking.current?.abort(), []);
    const play = async (wish) => {
        asking.current?.abort();
        const own = asking.current = new AbortController();
        let now = { ...IDLE, busy: true, wish };
        const show = (more) => { now = { ...now, ...more }; setState(now); };
        show({});
        try {
            for await (const told of events("POST", `runs/${run.id}/replay`, wish, { signal: own.signal })) {
                if ("turns" in told) show({ report: told });
                else if ("called" in told) show({ calls: [...now.calls, told] });
                else show({ problem: { message: told.detail } });
            }
            if (now.report) announce(verdict(now.report));
        } catch (error) {
            if (own.signal.aborted) return;
            show({ problem: error });
        }
        show({ busy: false });
    };
    return html`<section class="card replay" aria-labelledby="replay-title">
        <h2 id="replay-title">Replay</h2>
        <p class="hint">The model is not asked again: its answers are played as they were recorded, and everything that follows is compared byte for byte.</p>
        <div class="deeds">
            <button class="button" type="button" disabled=${state.busy} onClick=${() => play({ live_tools: false, effects: false })}>With recorded results</button>
            <button class="button" type="button" disabled=${state.busy} onClick=${() => play({ live_tools: true, effects: false })}>With the tools of today</button>
        </div>
        ${state.busy && html`<${Busy} text="Replaying …" />`}
        <${Problem} problem=${state.problem} onAllow=${() => play({ live_tools: true, effects: true })} />
        ${state.calls.map((call, index) => html`<${LiveCall} key=${index} call=${call} />`)}
        ${state.report && html`<${Report} report=${state.report} />`}
    </section>`;
}

function Problem({ problem, onAllow }) {
    if (!problem) return null;
    const tools = problem.body?.tools;
    if (!tools) return html`<${Notice} text=${problem.message} />`;
    return html`<${Notice} tone="warn" title="These tools may do more than read" text=${`${tools.join(", ")}: what they do, they would do again.`}>
        <button class="button button-small" type="button" onClick=${onAllow}>Call them all the same</button>
    <//>`;
}

function LiveCall({ call }) {
    return html`<div class="replay-call">
        <p><strong>${call.name}</strong> <span class=${`badge badge-${call.same ? "good" : "bad"}`}>${call.same ? "The same" : "Differs"}</span>
            ${!call.called && html`<span class="hint"> not called</span>`}</p>
        <${Diff} text=${call.diff} label=${`Difference of ${call.name}`} />
    </div>`;
}

function Report({ report }) {
    return html`<div class="replay-report">
        <div class=${`verdict verdict-${report.same ? "good" : "warn"}`}>
            <${Icon} name=${report.same ? "check" : "warning"} size="18" />
            <div><p class="notice-title">${verdict(report)}</p><p>${counted(report)}</p></div>
        </div>
        ${report.differences.map((one) => html`<div key=${one.where} class="replay-call">
            <p>Differs at <code>${one.where}</code></p><${Diff} text=${one.diff} label=${`Difference at ${one.where}`} />
        </div>`)}
    </div>`;
}

function verdict(report) {
    if (report.same) return "The same, byte for byte";
    const changed = report.live_calls.all - report.live_calls.same;
    return changed ? `${changed} of ${report.live_calls.all} results differ` : "The run differs";
}

function counted(report) {
    const notes = [`${many(report.turns, "answer")}, ${many(report.calls, "call")}, ${many(report.events, "event")} compared.`];
    if (report.requests_unknown) notes.push("For some answers it is not kept what the model was asked, so prompt and tools were not compared.");
    if (!report.log_is_whole) notes.push("The run did not come to its end by itself; it was compared as far as it went.");
    return notes.join(" ");
}

const many = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

function Diff({ text, label }) {
    if (!text) return null;
    const tone = (line) => ({ "+": "added", "-": "removed", "@": "place" })[line[0]] ?? "";
    return html`<pre class="json diff" tabindex="0" role="region" aria-label=${label}>${text.split("\n").map((line, index) => html`
        <span key=${index} class=${tone(line)}>${line}${"\n"}</span>`)}</pre>`;
}
