// What a tool answered, as it is best looked at: heard, seen, as a table, a chart or facts; and as it came.
import { useEffect, useMemo, useState } from "preact/hooks";
import { html } from "../html.js";
import { Chart, isDrawable } from "./chart.js";
import { Json, parsed } from "./json.js";
import { isFlat, isObject, tableIn } from "./rows.js";
import { Table, written } from "./table.js";

const MOST_FACTS = 14;
const LONG = 160;
const DATA_URL = /^data:((?:audio|image)\/[\w.+-]+);base64,/;

/** `value` is JSON, or a text that may be; `label` names it for a screen reader. */
export function Data({ value: given, label }) {
    const value = useMemo(() => parsed(given), [given]);
    const views = useMemo(() => viewsOf(value, label), [value, label]);
    const [chosen, choose] = useState(null);
    const view = views.find((one) => one.name === chosen) ?? views[0];
    return html`<div class="data">
        ${views.length > 1 && html`<div class="switch" role="group" aria-label=${`${label}: shown as`}>
            ${views.map((one) => html`
                <button key=${one.name} type="button" aria-pressed=${one === view} onClick=${() => choose(one.name)}>${one.name}</button>`)}
        </div>`}
        ${view.draw()}
    </div>`;
}

/** Whether a value is worth looking at before its tool's answer has been opened. */
export function isShowy(given) {
    const value = parsed(given);
    return mediaOf(value) !== null || tableIn(value) !== null;
}

function viewsOf(value, label) {
    const raw = { name: "Raw", draw: () => html`<${Json} value=${value} label=${label} />` };
    const media = mediaOf(value);
    if (media) return [{ name: media.kind === "audio" ? "Sound" : "Picture", draw: () => html`<${Media} ...${media} label=${label} />` }, raw];
    const table = tableIn(value);
    if (table) {
        const rest = () => (Object.keys(table.rest).length ? html`<${Facts} of=${table.rest} />` : null);
        const views = [{ name: "Table", draw: () => html`<${Table} table=${table} label=${label} />${rest()}` }];
        if (isDrawable(table)) views.push({ name: "Chart", draw: () => html`<${Chart} table=${table} />` });
        return [...views, raw];
    }
    if (isFacts(value)) return [{ name: "Facts", draw: () => html`<${Facts} of=${value} />` }, raw];
    return [raw];
}

/** Arguments or details: facts where they are few and short, and JSON otherwise. */
export function Members({ value, label }) {
    return isFacts(value) ? html`<${Facts} of=${value} />` : html`<${Json} value=${value} label=${label} />`;
}

function Facts({ of }) {
    return html`<dl class="facts">${Object.entries(of).map(([name, value]) => html`
        <div key=${name}><dt>${name}</dt><dd>${isFlat(value) ? written(value) : JSON.stringify(value)}</dd></div>`)}
    </dl>`;
}

function isFacts(value) {
    if (!isObject(value)) return false;
    const members = Object.values(value);
    return members.length > 0 && members.length <= MOST_FACTS && members.every((one) => isFlat(one) && written(one).length <= LONG);
}

/** Sound or a picture: { media_type, data_base64 }, MCP's { mimeType, data }, or a data: address. */
function mediaOf(value) {
    if (typeof value === "string") {
        const found = DATA_URL.exec(value);
        return found && media(found[1], value.slice(found[0].length));
    }
    if (!isObject(value)) return null;
    const type = value.media_type ?? value.mimeType;
    const data = value.data_base64 ?? value.data;
    return typeof type === "string" && typeof data === "string" ? media(type, data) : null;
}

function media(type, base64) {
    const kind = type.split("/")[0];
    return kind === "audio" || kind === "image" ? { kind, type, base64 } : null;
}

function Media({ kind, type, base64, label }) {
    const [address, setAddress] = useState("");
    useEffect(() => {
        let made = "";
        try {
            const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
            made = URL.createObjectURL(new Blob([bytes], { type }));
        } catch {
            made = "";
        }
        setAddress(made);
        return () => URL.revokeObjectURL(made);
    }, [type, base64]);
    if (!address) return null;
    return kind === "audio"
        ? html`<audio class="sound" controls src=${address} aria-label=${label}></audio>`
        : html`<img class="picture" src=${address} alt=${label} />`;
}
