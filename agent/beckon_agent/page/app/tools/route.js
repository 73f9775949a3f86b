// The way of a call drawn: EventType → Broker → Trigger → Service → reply, and the station where it stops.
import { html } from "../html.js";
import { Icon } from "../parts/icons.js";

const KINDS = [
    ["EventType", "says what the tool is"],
    ["Broker", "takes the call as an event"],
    ["Trigger", "passes it on"],
    ["Service", "does the work"],
    ["Reply", "comes back to the agent"],
];
const SAID = { ok: "in order", broken: "the call stops here", unknown: "not known" };
const ICONS = { ok: "check", broken: "close", unknown: "question" };

export function RoutePicture({ route }) {
    const columns = KINDS
        .map(([kind, does]) => ({ kind, does, stations: route.filter((one) => one.kind === kind) }))
        .filter((column) => column.stations.length > 0);
    return html`<ol class="route" aria-label="The way of a call">
        ${columns.map((column) => html`<${Column} key=${column.kind} column=${column} />`)}
    </ol>`;
}

function Column({ column }) {
    const state = worst(column.stations);
    return html`<li class=${`stop stop-${state}`}>
        <div class="stop-head">
            <span class="stop-mark"><${Icon} name=${ICONS[state]} size="14" /></span>
            <span class="stop-kind">${column.kind === "Reply" ? "Reply" : column.kind}</span>
            <span class="unseen">: ${SAID[state]}</span>
        </div>
        ${column.stations.map((one) => html`<${Station} key=${one.name + one.detail} station=${one} />`)}
        <p class="stop-does">${column.does}</p>
    </li>`;
}

function Station({ station }) {
    return html`<div class=${`station station-${station.state}`}>
        ${station.name && html`<p class="station-name">${named(station)}</p>`}
        ${station.detail && html`<p class="station-detail">${station.detail}</p>`}
        ${station.note && html`<p class="station-note">${station.note}</p>`}
        ${!station.name && !station.detail && html`<p class="station-detail">${station.state === "unknown" ? "Nobody has said which." : ""}</p>`}
    </div>`;
}

// The station of the reply is named by the reason of its condition, which is no object's name.
const named = ({ kind, name }) => (kind === "Reply" ? name.replace(/([a-z])([A-Z])/g, (_, end, begin) => `${end} ${begin.toLowerCase()}`) : name);

function worst(stations) {
    for (const state of ["broken", "ok"]) if (stations.some((one) => one.state === state)) return state;
    return "unknown";
}
