// The catalogue: every EventType with its tool, or with the reason why it has none.
import { useEffect, useRef, useState } from "preact/hooks";
import { agent, agents, chooseAgent } from "../agents.js";
import { get, toError } from "../api.js";
import { html, onValue, stay } from "../html.js";
import { announceText } from "../live.js";
import { Icon } from "../parts/icons.js";
import { Busy, Empty, Notice } from "../parts/notice.js";
import { href } from "../route.js";
import { WARNINGS } from "./conditions.js";

/** @import { CatalogueEntry, CataloguePage, StateCounts } from "beckon-api" */

/** @typedef {CatalogueEntry["state"]} State */
/** @typedef {{ query: string, state: State | "" }} Wanted */
/** @typedef {(change: (now: Wanted) => Wanted) => void} OnWanted */

const PAGE = 50;
const PAUSE = 250; // milliseconds after the last letter
const REFRESH_PAUSE = 4000; // milliseconds between two looks: a tool that is applied appears by itself
/** @type {[State | "", string][]} */
const STATES = [
    ["", "All"],
    ["ready", "Ready"],
    ["refused", "Not ready"],
    ["skipped", "No tools"],
];
/** @type {Record<State, [string, string]>} */
const BADGES = { ready: ["good", "Ready"], refused: ["bad", "Not ready"], skipped: ["plain", "No tool"] };

export function ToolList() {
    const [wanted, setWanted] = useState(/** @type {Wanted} */ ({ query: "", state: "" }));
    const { page, problem, loadMore } = useCatalogue(wanted);
    return html`<div class="page tools">
        <header class="view-head"><h1>Tools</h1><p>The services of the cluster that a model can call, and why others cannot be called.</p></header>
        <${Filters} wanted=${wanted} counts=${page?.counts} onWanted=${setWanted} />
        ${problem && html`<${Notice} tone="warn" text=${problem} />`}
        ${!page && !problem && html`<${Busy} />`}
        ${page?.data.length === 0 && html`<${Nothing} wanted=${wanted} />`}
        ${page && page.data.length > 0 && html`<ul class="tool-list">${page.data.map((one) => html`<${Row} key=${one.id} entry=${one} />`)}</ul>`}
        ${page?.has_more && html`<button class="button" type="button" onClick=${loadMore}>Show more</button>`}
    </div>`;
}

/** @param {{ wanted: Wanted }} props */
function Nothing({ wanted }) {
    if (wanted.query || wanted.state) return html`<${Empty} icon="tools" title="No tool matches" />`;
    return html`<${Empty} icon="tools" title="No tools yet" text="An EventType with a description and a Trigger that routes it become a tool: it appears here as soon as both are applied." />`;
}

/** @param {{ wanted: Wanted, counts?: StateCounts, onWanted: OnWanted }} props */
function Filters({ wanted, counts, onWanted }) {
    const timer = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
    useEffect(() => () => clearTimeout(timer.current), []);
    /** @param {string} query */
    const search = (query) => {
        clearTimeout(timer.current);
        timer.current = setTimeout(() => onWanted((now) => ({ ...now, query })), PAUSE);
    };
    const names = (agents.value ?? []).map((one) => one.id);
    const all = counts ? counts.ready + counts.refused + counts.skipped : 0;
    return html`<div class="filters">
        <form class="search" role="search" onSubmit=${stay}>
            <${Icon} name="search" size="16" />
            <input type="search" placeholder="Search" aria-label="Search tools" onInput=${onValue((value) => search(value.trim()))} />
        </form>
        <div class="switch" role="group" aria-label="Which EventTypes">
            ${STATES.map(
                ([
                    state,
                    name,
                ]) => html`<button key=${state} type="button" aria-pressed=${wanted.state === state} onClick=${() => onWanted((now) => ({ ...now, state }))}>
                ${name}${counts && html` <small>${state ? counts[state] : all}</small>`}</button>`,
            )}
        </div>
        ${
            names.length > 1 &&
            html`<select class="input" aria-label="Agent" value=${agent.value} onChange=${onValue(chooseAgent)}>
            ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select>`
        }
    </div>`;
}

/** @param {{ entry: CatalogueEntry }} props */
function Row({ entry }) {
    const [tone, name] = BADGES[entry.state];
    const stops = entry.conditions.find((one) => one.status === "False" && !WARNINGS.has(one.type));
    const title = entry.event_type
        ? html`<a href=${href("tools", entry.namespace, entry.event_type)}>${entry.name}</a>`
        : html`<span class="tool-name">${entry.name}</span>`;
    return html`<li class="tool-row">
        ${title}
        <span class="tool-state"><span class=${`badge badge-${tone}`}>${name}</span></span>
        <p class="tool-summary">${entry.description || (entry.event_type ? "Without a description." : "")}</p>
        ${stops && entry.state === "refused" && html`<p class="tool-why"><${Icon} name="warning" size="15" /><span><strong>${stops.reason}</strong>: ${stops.message}</span></p>`}
    </li>`;
}

/** @param {Wanted} wanted */
function useCatalogue(wanted) {
    const [state, setState] = useState(
        /** @type {{ page: CataloguePage | null, problem: string }} */ ({ page: null, problem: "" }),
    );
    const shown = useRef(PAGE);
    const params = { ...wanted, agent: agent.value };
    /**
     * @param {AbortSignal} [signal]
     * @param {{ announced?: boolean }} [options]
     */
    const load = async (signal, { announced = false } = {}) => {
        try {
            const first = await get("catalogue", {
                signal,
                params: { ...params, limit: Math.min(shown.current, 100) },
            });
            let page = first;
            while (page.has_more && first.data.length < shown.current) {
                page = await get("catalogue", {
                    signal,
                    params: { ...params, limit: 100, after: page.last_id },
                });
                first.data.push(...page.data);
            }
            setState({ page: { ...first, has_more: page.has_more }, problem: "" });
            if (announced) announceText(`${first.data.length}${page.has_more ? " or more" : ""} found.`);
        } catch (error) {
            if (!signal?.aborted) setState((before) => ({ ...before, problem: toError(error).message }));
        }
    };
    const now = useRef(load);
    now.current = load;
    useEffect(() => {
        const looking = new AbortController();
        shown.current = PAGE;
        load(looking.signal, { announced: Boolean(wanted.query || wanted.state) });
        const timer = setInterval(() => {
            if (!document.hidden) now.current(looking.signal);
        }, REFRESH_PAUSE);
        return () => {
            looking.abort();
            clearInterval(timer);
        };
    }, [wanted.query, wanted.state, agent.value]);
    const loadMore = () => {
        shown.current += PAGE;
        return load(new AbortController().signal);
    };
    return { ...state, loadMore };
}
