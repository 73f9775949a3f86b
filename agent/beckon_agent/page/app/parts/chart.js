// Numbers of a tool's answer as a picture: bars for things, a line for what follows one another.
import { useEffect, useRef, useState } from "preact/hooks";
import { html, onValue } from "../html.js";
import { numericColumns } from "./rows.js";
import { written } from "./table.js";

/** @import { RefObject } from "preact" */
/** @import { Row, TableData } from "./rows.js" */
/** @typedef {{ label: unknown, value: number }} Point */

const MOST_BARS = 30;
const WIDTH = 640; // until it is known how wide there is room
const LEAST_WIDTH = 200;
const HEIGHT = 220;
const MARGIN = { top: 12, right: 12, bottom: 26, left: 56 };
const TICKS = 4;

/** @param {{ table: TableData }} props */
export function Chart({ table }) {
    const numeric = numericColumns(table);
    const labels = labelColumn(table, numeric);
    const drawable = numeric.filter((name) => name !== labels);
    const [chosen, choose] = useState(drawable[0]);
    const points = table.rows
        .map((row) => ({ label: labels ? row[labels] : "", value: chosen ? row[chosen] : undefined }))
        .filter(isPoint);
    const Picture = isSequence(points) || points.length > MOST_BARS ? Line : Bars;
    return html`<div class="chart">
        ${
            drawable.length > 1 &&
            html`<label class="chart-choice"><span>Show</span>
            <select value=${chosen} onChange=${onValue(choose)}>
                ${drawable.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
            </select></label>`
        }
        <${Picture} points=${points} name=${chosen} />
    </div>`;
}

/**
 * @param {{ label: unknown, value: unknown }} point
 * @returns {point is Point}
 */
function isPoint(point) {
    return typeof point.value === "number";
}

/**
 * Whether a chart would say anything: numbers, and something that they are numbers of.
 * @param {TableData} table
 */
export function isDrawable(table) {
    const numeric = numericColumns(table);
    return table.rows.length > 1 && numeric.some((name) => name !== labelColumn(table, numeric));
}

/** @param {{ points: Point[], name: string }} props */
function Bars({ points, name }) {
    const most = Math.max(0, ...points.map((point) => point.value));
    const least = Math.min(0, ...points.map((point) => point.value));
    const span = most - least || 1;
    /** @param {number} value */
    const place = (value) => ((value - least) / span) * 100;
    return html`<div class="bars" role="img" aria-label=${summary(points, name)}>
        ${points.map(
            (point, index) => html`<div class="bar-row" key=${index}>
            <span class="bar-label">${written(point.label)}</span>
            <svg class="bar-track" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                <rect x=${place(Math.min(0, point.value))} y="0" width=${Math.max(0.4, (Math.abs(point.value) / span) * 100)} height="10" />
            </svg>
            <span class="bar-value">${written(point.value)}</span>
        </div>`,
        )}
    </div>`;
}

/** @param {{ points: Point[], name: string }} props */
function Line({ points, name }) {
    const values = points.map((point) => point.value);
    const scale = niceScale(Math.min(...values), Math.max(...values));
    const [ref, width] = useWidth();
    const inner = { width: width - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
    /** @param {number} index */
    const x = (index) => MARGIN.left + (points.length > 1 ? index / (points.length - 1) : 0.5) * inner.width;
    /** @param {number} value */
    const y = (value) => MARGIN.top + (1 - (value - scale.low) / (scale.high - scale.low)) * inner.height;
    const path = points
        .map((point, index) => `${index ? "L" : "M"}${x(index).toFixed(1)} ${y(point.value).toFixed(1)}`)
        .join("");
    const floor = MARGIN.top + inner.height;
    return html`<svg ref=${ref} class="line-chart" viewBox=${`0 0 ${width} ${HEIGHT}`} role="img" aria-label=${summary(points, name)}>
        ${scale.ticks.map(
            (tick) => html`<g key=${tick}>
            <line class="grid" x1=${MARGIN.left} x2=${width - MARGIN.right} y1=${y(tick)} y2=${y(tick)} />
            <text x=${MARGIN.left - 8} y=${y(tick) + 4} text-anchor="end">${written(tick)}</text>
        </g>`,
        )}
        <path class="area" d=${`${path}L${x(points.length - 1)} ${floor}L${x(0)} ${floor}Z`} />
        <path class="curve" d=${path} />
        ${
            points.length <= MOST_BARS &&
            points.map(
                (point, index) => html`
            <circle key=${index} cx=${x(index)} cy=${y(point.value)} r="3"><title>${`${point.label}: ${written(point.value)}`}</title></circle>`,
            )
        }
        <text x=${MARGIN.left} y=${HEIGHT - 8}>${written(points[0]?.label)}</text>
        <text x=${width - MARGIN.right} y=${HEIGHT - 8} text-anchor="end">${written(points.at(-1)?.label)}</text>
    </svg>`;
}

/**
 * How wide an element is drawn: letters keep their size on a phone.
 * @returns {[RefObject<SVGSVGElement | null>, number]}
 */
function useWidth() {
    const ref = useRef(/** @type {SVGSVGElement | null} */ (null));
    const [width, setWidth] = useState(WIDTH);
    useEffect(() => {
        const watching = new ResizeObserver(([entry]) =>
            setWidth(Math.max(LEAST_WIDTH, Math.round(entry.contentRect.width))),
        );
        if (ref.current) watching.observe(ref.current);
        return () => watching.disconnect();
    }, []);
    return [ref, width];
}

/**
 * @param {Point[]} points
 * @param {string} name
 */
function summary(points, name) {
    const ordered = [...points].sort((a, b) => a.value - b.value);
    const [least, most] = [ordered[0], ordered.at(-1)];
    if (!least || !most) return `Chart of ${name}`;
    return (
        `Chart of ${name}, ${points.length} values: from ${written(least.value)} (${written(least.label)}) ` +
        `to ${written(most.value)} (${written(most.label)})`
    );
}

/**
 * @param {TableData} table
 * @param {string[]} numeric
 */
function labelColumn({ columns, rows }, numeric) {
    const words = columns.filter((name) => !numeric.includes(name));
    const dates = words.find((name) => rows.every((row) => isTime(row[name])));
    // The longest word says most: a name rather than a symbol.
    /** @param {string} name */
    const length = (name) => rows.reduce((sum, row) => sum + String(row[name] ?? "").length, 0);
    const longest = words.reduce(
        (best, name) => (best === null || length(name) > length(best) ? name : best),
        /** @type {string | null} */ (null),
    );
    if (dates ?? longest) return dates ?? longest;
    return numeric.length > 1 && rises(rows.map((row) => row[numeric[0]])) ? numeric[0] : undefined;
}

/** @param {Point[]} points */
function isSequence(points) {
    if (points.length < 3) return false;
    const labels = points.map((point) => point.label);
    return labels.every(isTime) || (labels.every((label) => typeof label === "number") && rises(labels));
}

/** @param {unknown} value */
function isTime(value) {
    return typeof value === "string" && /^\d{4}-\d{2}(-\d{2})?([T ]\d{2}:\d{2})?/.test(value);
}

/** @param {unknown[]} values */
function rises(values) {
    return values.every((value, index) => index === 0 || Number(value) > Number(values[index - 1]));
}

/**
 * @param {number} least
 * @param {number} most
 */
function niceScale(least, most) {
    const span = most - least || Math.abs(most) || 1;
    const rough = span / TICKS;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5].map((one) => one * power).find((one) => one >= rough) ?? 10 * power;
    const low = Math.floor(least / step) * step;
    const high = Math.max(Math.ceil(most / step) * step, low + step);
    const ticks = [];
    for (let tick = low; tick <= high + step / 2; tick += step) ticks.push(Number(tick.toPrecision(12)));
    return { low, high, ticks };
}
