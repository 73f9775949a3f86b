// The runs of the user, the newest first; the list is refreshed while it is shown.
import { useEffect, useRef, useState } from "preact/hooks";
import { agents } from "../agents.js";
import { get, toError } from "../api.js";
import { html, onValue } from "../html.js";
import { Busy, Empty, Notice } from "../parts/notice.js";
import { ago, duration } from "../parts/times.js";
import { href } from "../route.js";
import { isOver, questionOf, stateOfRun } from "./states.js";

/** @import { RunListItem } from "beckon-api" */

/** @typedef {{ status: string, agent: string }} Wanted */
/** @typedef {{ runs: RunListItem[] | null, more: boolean, problem: string }} Found */

const PAGE = 30;
const PAUSE = 3000; // milliseconds between two looks
const SHOWN_TOOLS = 4;
const STATUSES = [
    ["", "All"],
    ["running", "Running"],
    ["suspended", "Waiting"],
    ["completed", "Done"],
    ["failed", "Failed"],
];

export function RunList() {
    const [wanted, setWanted] = useState({ status: "", agent: "" });
    const { runs, more, problem, loadMore } = useRuns(wanted);
    return html`<div class="page runs">
        <header class="view-head"><h1>Runs</h1><p>Every question, with all steps to its answer.</p></header>
        <${Filters} wanted=${wanted} onWanted=${setWanted} />
        ${problem && html`<${Notice} tone="warn" text=${problem} />`}
        ${runs === null && !problem && html`<${Busy} />`}
        ${runs?.length === 0 && html`<${Nothing} wanted=${wanted} />`}
        ${runs !== null && runs.length > 0 && html`<ul class="run-list">${runs.map((run) => html`<${Row} key=${run.id} run=${run} />`)}</ul>`}
        ${more && html`<button class="button" type="button" onClick=${loadMore}>Show more</button>`}
    </div>`;
}

/** @param {{ wanted: Wanted }} props */
function Nothing({ wanted }) {
    if (wanted.status || wanted.agent) return html`<${Empty} icon="runs" title="No run matches" />`;
    return html`<${Empty} icon="runs" title="No runs yet" text="Ask something in the chat, or with beckon ask, and its run appears here.">
        <a class="button" href=${href("chat")}>Ask something</a>
    <//>`;
}

/** @param {{ wanted: Wanted, onWanted: (wanted: Wanted) => void }} props */
function Filters({ wanted, onWanted }) {
    const names = (agents.value ?? []).map((one) => one.id);
    return html`<div class="filters">
        <div class="switch" role="group" aria-label="Which runs">
            ${STATUSES.map(
                ([status, name]) => html`
                <button key=${status} type="button" aria-pressed=${wanted.status === status} onClick=${() => onWanted({ ...wanted, status })}>${name}</button>`,
            )}
        </div>
        ${
            names.length > 1 &&
            html`<select class="input" aria-label="Agent" value=${wanted.agent}
            onChange=${onValue((name) => onWanted({ ...wanted, agent: name }))}>
            <option value="">All agents</option>${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select>`
        }
    </div>`;
}

/** @param {{ run: RunListItem }} props */
function Row({ run }) {
    const state = stateOfRun(run);
    const seconds = (run.ended_at ?? Date.now() / 1000) - run.created_at;
    const failed = run.calls_failed > 0 && `${run.calls_failed} failed`;
    return html`<li class="run-row">
        <a href=${href("runs", run.id)}>${questionOf(run)}</a>
        <span class="run-badge"><span class=${`badge badge-${state.tone}`}>
            ${!isOver(run) && run.status !== "suspended" && html`<span class="dots" aria-hidden="true"><i /><i /><i /></span>`}
            ${run.approvals_waiting + run.inputs_waiting > 0 ? "Waiting for you" : state.name}</span></span>
        <span class="run-tools">
            ${run.tools.slice(0, SHOWN_TOOLS).map((tool) => html`<span key=${tool.name} class="tool-chip">${tool.name}${tool.calls > 1 && html` <small>×${tool.calls}</small>`}</span>`)}
            ${run.tools.length > SHOWN_TOOLS && html`<span class="hint">and ${run.tools.length - SHOWN_TOOLS} more</span>`}
            ${failed && html`<span class="run-failed">${failed}</span>`}
        </span>
        <span class="run-meta">
            <span>${run.agent}</span>
            <span title=${new Date(run.created_at * 1000).toLocaleString()}>${ago(run.created_at)}</span>
            ${run.status !== "suspended" && html`<span>${duration(seconds)}</span>`}
            ${run.usage && html`<span>${run.usage.total_tokens.toLocaleString("en")} tokens</span>`}
        </span>
    </li>`;
}

/** @param {Wanted} wanted */
function useRuns(wanted) {
    const [state, setState] = useState(/** @type {Found} */ ({ runs: null, more: false, problem: "" }));
    const now = useRef(state);
    now.current = state;
    /** @param {AbortSignal} signal */
    const load = async (signal) => {
        const known = now.current.runs?.length ?? 0;
        try {
            const page = await get("runs", {
                signal,
                params: { ...wanted, limit: Math.min(Math.max(PAGE, known), 100) },
            });
            const fresh = new Set(page.data.map((run) => run.id));
            const beyond = known > 100 ? (now.current.runs ?? []).slice(100) : [];
            const rest = beyond.filter((run) => !fresh.has(run.id));
            setState({
                runs: [...page.data, ...rest],
                more: rest.length ? now.current.more : page.has_more,
                problem: "",
            });
        } catch (error) {
            if (!signal.aborted) setState({ ...now.current, problem: toError(error).message });
        }
    };
    useEffect(() => {
        const looking = new AbortController();
        now.current = { runs: null, more: false, problem: "" };
        setState(now.current);
        load(looking.signal);
        const timer = setInterval(() => {
            if (!document.hidden) load(looking.signal);
        }, PAUSE);
        return () => {
            looking.abort();
            clearInterval(timer);
        };
    }, [wanted.status, wanted.agent]);
    const loadMore = async () => {
        const last = now.current.runs?.at(-1)?.id;
        try {
            const page = await get("runs", { params: { ...wanted, limit: PAGE, after: last } });
            setState({ runs: [...(now.current.runs ?? []), ...page.data], more: page.has_more, problem: "" });
        } catch (error) {
            setState({ ...now.current, problem: toError(error).message });
        }
    };
    return { ...state, loadMore };
}
