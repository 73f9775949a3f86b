// One EventType: the route of its calls, its conditions, what a model sees of it, and a form that calls it.
import { useEffect, useState } from "preact/hooks";
import { agent } from "../agents.js";
import { ApiError, get, statusOf, toError } from "../api.js";
import { html } from "../html.js";
import { Icon } from "../parts/icons.js";
import { Busy, Empty, Notice } from "../parts/notice.js";
import { href } from "../route.js";
import { CallForm } from "./call-form.js";
import { Conditions, Findings } from "./conditions.js";
import { RoutePicture } from "./route.js";
import { WhatTheModelSees } from "./sees.js";

/** @import { ExplainedEventType } from "beckon-api" */

/** @typedef {{ entry: ExplainedEventType | null, problem: Error | null }} Found */

const REFRESH_PAUSE = 3000; // milliseconds between two looks: a repair appears by itself
const STATES = { ready: ["good", "Ready"], refused: ["bad", "Not ready"], skipped: ["plain", "No tool"] };

/**
 * `parts` are the name of a tool, or a namespace and an EventType.
 * @param {{ parts: string[] }} props
 */
export function ToolPage({ parts }) {
    const { entry, problem } = useEntry(parts);
    if (problem && statusOf(problem) === 404) {
        return html`<div class="page"><${Back} /><${Empty} icon="tools" title="There is no such tool" text=${problem.message} /></div>`;
    }
    if (!entry)
        return html`<div class="page"><${Back} />${problem ? html`<${Notice} text=${problem.message} />` : html`<${Busy} />`}</div>`;
    const { tool } = entry;
    return html`<div class="page tool">
        <${Back} />
        <${Head} entry=${entry} />
        ${problem && html`<${Notice} tone="warn" text=${problem.message} />`}
        <section class="card part" aria-labelledby="route-title">
            <h2 id="route-title">Route of a call</h2>
            <${RoutePicture} route=${entry.route} />
        </section>
        <section class="card part" aria-labelledby="conditions-title">
            <h2 id="conditions-title">Conditions</h2>
            <${Conditions} conditions=${entry.conditions} />
        </section>
        <${Findings} findings=${entry.findings} />
        ${
            tool &&
            html`
            <${WhatTheModelSees} tool=${tool} />
            <section class="card part" aria-labelledby="call-form-title">
                <h2 id="call-form-title">Call this tool</h2>
                ${
                    tool.requires_approval
                        ? html`<${Notice} tone="plain" text="A call needs a person's approval, which is given in a conversation: use the tool in the chat." />`
                        : html`<${CallForm} key=${tool.name} tool=${tool} />`
                }
            </section>`
        }
    </div>`;
}

function Back() {
    return html`<a class="back" href=${href("tools")}><${Icon} name="back" size="16" />All tools</a>`;
}

/** @param {{ entry: ExplainedEventType }} props */
function Head({ entry }) {
    const [tone, name] = STATES[entry.state];
    const { tool } = entry;
    const hints = tool
        ? [
              tool.read_only && "only reads",
              tool.idempotent && "may be repeated",
              tool.requires_approval && "needs approval",
              tool.destructive && "destructive",
          ].filter(Boolean)
        : [];
    return html`<header class="run-head">
        <h1 class="tool-title">${entry.name}</h1>
        <p class="run-state"><span class=${`badge badge-${tone}`}>${name}</span>
            <span>EventType ${entry.namespace}/${entry.event_type}</span>
            ${hints.map((hint) => html`<span key=${hint} class="badge badge-plain">${hint}</span>`)}</p>
        ${entry.description && html`<p class="tool-description">${entry.description}</p>`}
    </header>`;
}

/** @param {string[]} parts */
function useEntry(parts) {
    const [state, setState] = useState(/** @type {Found} */ ({ entry: null, problem: null }));
    const key = parts.join("/");
    useEffect(() => {
        const looking = new AbortController();
        let place = parts.length > 1 ? parts : null;
        setState({ entry: null, problem: null });
        const load = async () => {
            try {
                place ??= await placeOf(parts[0], looking.signal);
                const [namespace, eventType] = place.map(encodeURIComponent);
                const entry = await get(`catalogue/${namespace}/${eventType}`, {
                    signal: looking.signal,
                    params: { agent: agent.value },
                });
                setState({ entry, problem: null });
            } catch (error) {
                if (!looking.signal.aborted)
                    setState((before) => ({
                        entry: statusOf(error) === 404 ? null : before.entry,
                        problem: toError(error),
                    }));
            }
        };
        load();
        const timer = setInterval(() => {
            if (!document.hidden) load();
        }, REFRESH_PAUSE);
        return () => {
            looking.abort();
            clearInterval(timer);
        };
    }, [key, agent.value]);
    return state;
}

/**
 * Where the tool of a name is declared: links from calls know its name alone.
 * @param {string} name
 * @param {AbortSignal} signal
 */
async function placeOf(name, signal) {
    const page = await get("catalogue", {
        signal,
        params: { query: name, state: "ready", limit: 100, agent: agent.value },
    });
    const found = page.data.find((one) => one.name === name);
    if (found) return [found.namespace, found.event_type];
    throw new ApiError(404, `There is no tool ${name} now: it was renamed or removed, or is not ready.`);
}
