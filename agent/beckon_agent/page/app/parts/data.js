// A tool's reply in its best form: sound, picture, table, chart or facts; and as it came.
import { useEffect, useMemo, useState } from "preact/hooks";
import { html } from "../html.js";
import { Chart, isDrawable } from "./chart.js";
import { Json, parsed } from "./json.js";
import { isFlat, isObject, tableIn } from "./rows.js";
import { Table, written } from "./table.js";

/** @import { ComponentChildren } from "preact" */
/** @typedef {{ name: string, draw: () => ComponentChildren }} View */
/** @typedef {{ kind: "audio" | "image", type: string, base64: string }} MediaData */

const MOST_FACTS = 14;
const LONG = 160;
const DATA_URL = /^data:((?:audio|image)\/[\w.+-]+);base64,/;

/**
 * `value` is JSON, or a text that may be; `label` names it for a screen reader.
 * @param {{ value: unknown, label: string }} props
 */
export function Data({ value: given, label }) {
    const value = useMemo(() => parsed(given), [given]);
    const views = useMemo(() => viewsOf(value, label), [value, label]);
    const [chosen, choose] = useState("");
    const view = views.find((one) => one.name === chosen) ?? views[0];
    return html`<div class="data">
        ${
            views.length > 1 &&
            html`<div class="switch" role="group" aria-label=${`${label}: shown as`}>
            ${views.map(
                (one) => html`
                <button key=${one.name} type="button" aria-pressed=${one === view} onClick=${() => choose(one.name)}>${one.name}</button>`,
            )}
        </div>`
        }
        ${view.draw()}
    </div>`;
}

/**
 * Whether a value is worth looking at before its tool's answer has been opened.
 * @param {unknown} given
 */
export function isShowy(given) {
    const value = parsed(given);
    return mediaOf(value) !== null || tableIn(value) !== null;
}

/**
 * @param {unknown} value
 * @param {string} label
 * @returns {View[]}
 */
function viewsOf(value, label) {
    const raw = { name: "Raw", draw: () => html`<${Json} value=${value} label=${label} />` };
    const found = mediaOf(value);
    if (found)
        return [
            {
                name: found.kind === "audio" ? "Sound" : "Picture",
                draw: () => html`<${Media} ...${found} label=${label} />`,
            },
            raw,
        ];
    const table = tableIn(value);
    if (table) {
        const rest = () => (Object.keys(table.rest).length ? html`<${Facts} of=${table.rest} />` : null);
        const views = [
            { name: "Table", draw: () => html`<${Table} table=${table} label=${label} />${rest()}` },
        ];
        if (isDrawable(table)) views.push({ name: "Chart", draw: () => html`<${Chart} table=${table} />` });
        return [...views, raw];
    }
    if (isFacts(value)) return [{ name: "Facts", draw: () => html`<${Facts} of=${value} />` }, raw];
    return [raw];
}

/**
 * Arguments or details: facts where they are few and short, and JSON otherwise.
 * @param {{ value: unknown, label: string }} props
 */
export function Members({ value, label }) {
    return isFacts(value) ? html`<${Facts} of=${value} />` : html`<${Json} value=${value} label=${label} />`;
}

/** @param {{ of: Record<string, unknown> }} props */
function Facts({ of }) {
    return html`<dl class="facts">${Object.entries(of).map(
        ([name, value]) => html`
        <div key=${name}><dt>${name}</dt><dd>${isFlat(value) ? written(value) : JSON.stringify(value)}</dd></div>`,
    )}
    </dl>`;
}

/** @param {unknown} value */
function isFacts(value) {
    if (!isObject(value)) return false;
    const members = Object.values(value);
    return (
        members.length > 0 &&
        members.length <= MOST_FACTS &&
        members.every((one) => isFlat(one) && written(one).length <= LONG)
    );
}

/**
 * Sound or a picture: { media_type, data_base64 }, MCP's { mimeType, data }, or a data: address.
 * @param {unknown} value
 * @returns {MediaData | null}
 */
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

/**
 * @param {string} type
 * @param {string} base64
 * @returns {MediaData | null}
 */
function media(type, base64) {
    const kind = type.split("/")[0];
    return kind === "audio" || kind === "image" ? { kind, type, base64 } : null;
}

/** @param {MediaData & { label: string }} props */
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
