// The catalogue: every EventType, what it becomes, and why not where it becomes nothing.
import { useEffect, useRef, useState } from "preact/hooks";
import { agent, agents, chooseAgent } from "../agents.js";
import { get } from "../api.js";
import { html } from "../html.js";
import { announce } from "../live.js";
import { Icon } from "../parts/icons.js";
import { Busy, Empty, Notice } from "../parts/notice.js";
import { href } from "../route.js";
import { WARNINGS } from "./conditions.js";

const PAGE = 50;
const PAUSE = 250; // milliseconds after the last letter
const AGAIN = 4000; // milliseconds between two looks: a tool that is applied appears by itself
const STATES = [["", "All"], ["ready", "Ready"], ["refused", "Not ready"], ["skipped", "No tools"]];
const BADGES = { ready: ["good", "Ready"], refused: ["bad", "Not ready"], skipped: ["plain", "No tool"] };

export function ToolList() {
    const [wanted, setWanted] = useState({ query: "", state: "" });
    const { page, problem, loadMore } = useCatalogue(wanted);
    return html`<div class="page tools">
        <header class="view-head"><h1>Tools</h1><p>What the services of the cluster can do for a model, and why one cannot be called.</p></header>
        <${Filters} wanted=${wanted} counts=${page?.counts} onWanted=${setWanted} />
        ${problem && html`<${Notice} tone="warn" text=${problem} />`}
        ${!page && !problem && html`<${Busy} />`}
        ${page?.data.length === 0 && html`<${Nothing} wanted=${wanted} />`}
        ${page?.data.length > 0 && html`<ul class="tool-list">${page.data.map((one) => html`<${Row} key=${one.id} entry=${one} />`)}</ul>`}
        ${page?.has_more && html`<button class="button" type="button" onClick=${loadMore}>Show more</button>`}
    </div>`;
}

function Nothing({ wanted }) {
    if (wanted.query || wanted.state) return html`<${Empty} icon="tools" title="Nothing is like that" />`;
    return html`<${Empty} icon="tools" title="No tools yet" text="An EventType with a description and a Trigger that routes it become a tool: it appears here as soon as both are applied." />`;
}

function Filters({ wanted, counts, onWanted }) {
    const timer = useRef(0);
    useEffect(() => () => clearTimeout(timer.current), []);
    const search = (query) => {
        clearTimeout(timer.current);
        timer.current = setTimeout(() => onWanted((now) => ({ ...now, query })), PAUSE);
    };
    const names = (agents.value ?? []).map((one) => one.id);
    const all = counts ? counts.ready + counts.refused + counts.skipped : 0;
    return html`<div class="filters">
        <form class="search" role="search" onSubmit=${(event) => event.preventDefault()}>
            <${Icon} name="search" size="16" />
            <input type="search" placeholder="Search" aria-label="Search tools" onInput=${(event) => search(event.target.value.trim())} />
        </form>
        <div class="switch" role="group" aria-label="Which EventTypes">
            ${STATES.map(([state, name]) => html`<button key=${state} type="button" aria-pressed=${wanted.state === state} onClick=${() => onWanted((now) => ({ ...now, state }))}>
                ${name}${counts && html` <small>${state ? counts[state] : all}</small>`}</button>`)}
        </div>
        ${names.length > 1 && html`<select class="input" aria-label="Agent" value=${agent.value} onChange=${(event) => chooseAgent(event.target.value)}>
            ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select>`}
    </div>`;
}

function Row({ entry }) {
    const [tone, name] = BADGES[entry.state];
    const stops = entry.conditions.find((one) => one.status === "False" && !WARNINGS.has(one.type));
    const title = entry.event_type
        ? html`<a href=${href("tools", entry.namespace, entry.event_type)}>${entry.name}</a>`
        : html`<span class="tool-name">${entry.name}</span>`;
    return html`<li class="tool-row">
        ${title}
        <span class="tool-state"><span class=${`badge badge-${tone}`}>${name}</span></span>
        <p class="tool-said">${entry.description || (entry.event_type ? "Without a description." : "")}</p>
        ${stops && entry.state === "refused" && html`<p class="tool-why"><${Icon} name="warning" size="15" /><span><strong>${stops.reason}</strong>: ${stops.message}</span></p>`}
    </li>`;
}

function useCatalogue(wanted) {
    const [state, setState] = useState({ page: null, problem: "" });
    const shown = useRef(PAGE);
    const now = useRef(null);
    const params = { ...wanted, agent: agent.value };
    const load = async (signal, { said = false } = {}) => {
        try {
            const first = await get("catalogue", { signal, params: { ...params, limit: Math.min(shown.current, 100) } });
            let page = first;
            while (page.has_more && first.data.length < shown.current) {
                page = await get("catalogue", { signal, params: { ...params, limit: 100, after: page.last_id } });
                first.data.push(...page.data);
            }
            setState({ page: { ...first, has_more: page.has_more }, problem: "" });
            if (said) announce(`${first.data.length}${page.has_more ? " or more" : ""} found.`);
        } catch (error) {
            if (!signal.aborted) setState((before) => ({ ...before, problem: error.message }));
        }
    };
    now.current = load;
    useEffect(() => {
        const looking = new AbortController();
        shown.current = PAGE;
        load(looking.signal, { said: Boolean(wanted.query || wanted.state) });
        const timer = setInterval(() => { if (!document.hidden) now.current(looking.signal); }, AGAIN);
        return () => { looking.abort(); clearInterval(timer); };
    }, [wanted.query, wanted.state, agent.value]);
    const loadMore = () => {
        shown.current += PAGE;
        return load(new AbortController().signal);
    };
    return { ...state, loadMore };
}
