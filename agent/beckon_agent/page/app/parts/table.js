// Rows of a tool's answer as a table that can be sorted.
import { useState } from "preact/hooks";
import { html } from "../html.js";
import { numericColumns } from "./rows.js";

/** @import { Row, TableData } from "./rows.js" */
/** @typedef {{ by: string | null, down: boolean }} Sorting */

const FIRST = 12;

/** @param {{ table: TableData, label: string }} props */
export function Table({ table, label }) {
    const [sorted, setSorted] = useState(/** @type {Sorting} */ ({ by: null, down: false }));
    const [all, setAll] = useState(false);
    const numeric = new Set(numericColumns(table));
    const rows = inOrder(table.rows, sorted);
    const shown = all ? rows : rows.slice(0, FIRST);
    /** @param {string} by */
    const sort = (by) =>
        setSorted((now) => {
            if (now.by !== by) return { by, down: numeric.has(by) };
            return now.down === numeric.has(by) ? { by, down: !now.down } : { by: null, down: false };
        });
    return html`<div class="table-room">
        <div class="scrolls" tabindex="0" role="region" aria-label=${label}>
            <table class="table">
                <thead><tr>${table.columns.map(
                    (name) => html`
                    <th key=${name} scope="col" class=${numeric.has(name) ? "number" : ""} aria-sort=${direction(sorted, name)}>
                        <button type="button" onClick=${() => sort(name)}>${name}<span aria-hidden="true">${arrow(sorted, name)}</span></button>
                    </th>`,
                )}
                </tr></thead>
                <tbody>${shown.map(
                    (row, index) => html`<tr key=${index}>
                    ${table.columns.map((name) => html`<td key=${name} class=${numeric.has(name) ? "number" : ""}>${written(row[name])}</td>`)}
                </tr>`,
                )}</tbody>
            </table>
        </div>
        ${
            rows.length > FIRST &&
            html`<button class="button button-small" type="button" onClick=${() => setAll(!all)}>
            ${all ? "Show fewer rows" : `Show all ${rows.length} rows`}
        </button>`
        }
    </div>`;
}

/** @param {unknown} value */
export function written(value) {
    if (value === null || value === undefined) return "–";
    if (typeof value === "number")
        return value.toLocaleString("en", { maximumFractionDigits: 6, useGrouping: false });
    return String(value);
}

/**
 * @param {Row[]} rows
 * @param {Sorting} sorting
 */
function inOrder(rows, { by, down }) {
    if (by === null) return rows;
    const order = [...rows].sort((a, b) => compare(a[by], b[by]));
    return down ? order.reverse() : order;
}

/**
 * @param {unknown} a
 * @param {unknown} b
 */
function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a ?? "").localeCompare(String(b ?? ""), undefined, { numeric: true });
}

/**
 * @param {Sorting} sorting
 * @param {string} name
 */
function direction({ by, down }, name) {
    if (by !== name) return "none";
    return down ? "descending" : "ascending";
}

/**
 * @param {Sorting} sorting
 * @param {string} name
 */
function arrow({ by, down }, name) {
    if (by !== name) return "";
    return down ? " ↓" : " ↑";
}
