// The route of a call drawn: EventType → Broker → Trigger → Service → reply, and the object where it stops.
import { html } from "../html.js";
import { Icon } from "../parts/icons.js";

/** @import { Station as StationData } from "beckon-api" */

/** @typedef {StationData["state"]} State */
/** @typedef {{ kind: StationData["kind"], does: string, stations: StationData[] }} ColumnData */

/** @type {[StationData["kind"], string][]} */
const KINDS = [
    ["EventType", "declares the tool"],
    ["Broker", "receives the call as an event"],
    ["Trigger", "forwards it"],
    ["Service", "does the work"],
    ["Reply", "returns to the agent"],
];
/** @type {State[]} */
const STATES = ["broken", "ok"]; // the worse first
const STATE_NAMES = { ok: "in order", broken: "the call stops here", unknown: "not known" };
const ICONS = { ok: "check", broken: "close", unknown: "question" };

/** @param {{ route: StationData[] }} props */
export function RoutePicture({ route }) {
    const columns = KINDS.map(([kind, does]) => ({
        kind,
        does,
        stations: route.filter((one) => one.kind === kind),
    })).filter((column) => column.stations.length > 0);
    return html`<ol class="route" aria-label="Route of a call">
        ${columns.map((column) => html`<${Column} key=${column.kind} column=${column} />`)}
    </ol>`;
}

/** @param {{ column: ColumnData }} props */
function Column({ column }) {
    const state = worst(column.stations);
    return html`<li class=${`stop stop-${state}`}>
        <div class="stop-head">
            <span class="stop-mark"><${Icon} name=${ICONS[state]} size="14" /></span>
            <span class="stop-kind">${column.kind === "Reply" ? "Reply" : column.kind}</span>
            <span class="unseen">: ${STATE_NAMES[state]}</span>
        </div>
        ${column.stations.map((one) => html`<${Station} key=${one.name + one.detail} station=${one} />`)}
        <p class="stop-does">${column.does}</p>
    </li>`;
}

/** @param {{ station: StationData }} props */
function Station({ station }) {
    return html`<div class=${`station station-${station.state}`}>
        ${station.name && html`<p class="station-name">${named(station)}</p>`}
        ${station.detail && html`<p class="station-detail">${station.detail}</p>`}
        ${station.note && html`<p class="station-note">${station.note}</p>`}
        ${!station.name && !station.detail && html`<p class="station-detail">${station.state === "unknown" ? "Not declared." : ""}</p>`}
    </div>`;
}

// The station of the reply is named by the reason of its condition, which is no object's name.
/** @param {StationData} station */
const named = ({ kind, name }) =>
    kind === "Reply"
        ? name.replace(/([a-z])([A-Z])/g, (_, end, begin) => `${end} ${begin.toLowerCase()}`)
        : name;

/**
 * @param {StationData[]} stations
 * @returns {State}
 */
function worst(stations) {
    for (const state of STATES) if (stations.some((one) => one.state === state)) return state;
    return "unknown";
}
