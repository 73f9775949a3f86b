// A run played again: as it was recorded, or with the tools of today; and where it differs.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, events, toError } from "../api.js";
import { html } from "../html.js";
import { announceText } from "../live.js";
import { Icon } from "../parts/icons.js";
import { Busy, Notice } from "../parts/notice.js";

/** @import { LiveCallDocument, ReplayDocument, ReplayRequest, RunDocument } from "beckon-api" */

/** @typedef {{ busy: boolean, calls: LiveCallDocument[], report: ReplayDocument | null, problem: Error | null }} State */

/** @type {State} */
const IDLE = { busy: false, calls: [], report: null, problem: null };

/** @param {{ run: RunDocument }} props */
export function Replay({ run }) {
    const [state, setState] = useState(IDLE);
    const playing = useRef(/** @type {AbortController | null} */ (null));
    useEffect(() => () => playing.current?.abort(), []);
    /** @param {ReplayRequest} options */
    const play = async (options) => {
        playing.current?.abort();
        const own = new AbortController();
        playing.current = own;
        let now = { ...IDLE, busy: true };
        /** @param {Partial<State>} more */
        const show = (more) => {
            now = { ...now, ...more };
            setState(now);
        };
        show({});
        try {
            for await (const event of events("POST", `runs/${run.id}/replay`, options, {
                signal: own.signal,
            })) {
                if ("turns" in event) show({ report: event });
                else if ("called" in event) show({ calls: [...now.calls, event] });
                else show({ problem: new Error(event.detail) });
            }
            if (now.report) announceText(verdict(now.report));
        } catch (error) {
            if (own.signal.aborted) return;
            show({ problem: toError(error) });
        }
        show({ busy: false });
    };
    return html`<section class="card replay" aria-labelledby="replay-title">
        <h2 id="replay-title">Replay</h2>
        <p class="hint">The replay uses the recorded answers of the model, and compares everything that follows byte for byte.</p>
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

/** @param {{ problem: Error | null, onAllow: () => void }} props */
function Problem({ problem, onAllow }) {
    if (!problem) return null;
    const tools = problem instanceof ApiError ? problem.body?.tools : undefined;
    if (!tools) return html`<${Notice} text=${problem.message} />`;
    return html`<${Notice} tone="warn" title="These tools may do more than read" text=${`${tools.join(", ")}: they would do it again.`}>
        <button class="button button-small" type="button" onClick=${onAllow}>Call them anyway</button>
    <//>`;
}

/** @param {{ call: LiveCallDocument }} props */
function LiveCall({ call }) {
    return html`<div class="replay-call">
        <p><strong>${call.name}</strong> <span class=${`badge badge-${call.same ? "good" : "bad"}`}>${call.same ? "The same" : "Differs"}</span>
            ${!call.called && html`<span class="hint"> not called</span>`}</p>
        <${Diff} text=${call.diff} label=${`Difference of ${call.name}`} />
    </div>`;
}

/** @param {{ report: ReplayDocument }} props */
function Report({ report }) {
    return html`<div class="replay-report">
        <div class=${`verdict verdict-${report.same ? "good" : "warn"}`}>
            <${Icon} name=${report.same ? "check" : "warning"} size="18" />
            <div><p class="notice-title">${verdict(report)}</p><p>${counted(report)}</p></div>
        </div>
        ${report.differences.map(
            (one) => html`<div key=${one.where} class="replay-call">
            <p>Differs at <code>${one.where}</code></p><${Diff} text=${one.diff} label=${`Difference at ${one.where}`} />
        </div>`,
        )}
    </div>`;
}

/** @param {ReplayDocument} report */
function verdict(report) {
    if (report.same) return "The same, byte for byte";
    const changed = report.live_calls.all - report.live_calls.same;
    return changed ? `${changed} of ${report.live_calls.all} results differ` : "The run differs";
}

/** @param {ReplayDocument} report */
function counted(report) {
    const notes = [
        `${many(report.turns, "answer")}, ${many(report.calls, "call")}, ${many(report.events, "event")} compared.`,
    ];
    if (report.requests_unknown)
        notes.push(
            "For some answers the request to the model is not stored, so prompt and tools were not compared.",
        );
    if (!report.log_is_whole)
        notes.push("The run did not finish by itself; it was compared up to its last event.");
    return notes.join(" ");
}

/**
 * @param {number} number
 * @param {string} word
 */
const many = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

/** @type {Record<string, string>} */
const TONES = { "+": "added", "-": "removed", "@": "place" };

/** @param {{ text: string, label: string }} props */
function Diff({ text, label }) {
    if (!text) return null;
    /** @param {string} line */
    const tone = (line) => TONES[line[0]] ?? "";
    return html`<pre class="json diff" tabindex="0" role="region" aria-label=${label}>${text.split("\n").map(
        (line, index) => html`
        <span key=${index} class=${tone(line)}>${line}${"\n"}</span>`,
    )}</pre>`;
}
