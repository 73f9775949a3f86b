// The time line of a run: a row for each answer and each call, on one scale; a row opens what is in it.
import { html } from "../html.js";
import { Icon } from "../parts/icons.js";
import { duration } from "../parts/times.js";
import { CallDetails, TurnDetails } from "./details.js";
import { lanesOf, lengthOf } from "./lanes.js";
import { scaleOf } from "./scale.js";
import { isOver, stateOfCall } from "./states.js";

/** @import { RunCall, RunDocument } from "beckon-api" */
/** @import { Bar, Mark, Row as RowData } from "./lanes.js" */
/** @import { Scale } from "./scale.js" */
/** @import { State } from "./states.js" */

/**
 * @typedef {object} PictureProps
 * @property {RunDocument} run
 * @property {number} now
 * @property {string} saying
 * @property {string} open the key of the row
 * @property {(key: string) => void} onOpen
 * @property {() => void} onDecided
 */

/**
 * @typedef {object} RowProps
 * @property {RowData} row
 * @property {RunDocument} run
 * @property {Scale} scale
 * @property {Mark[]} marks
 * @property {string} saying
 * @property {boolean} open
 * @property {() => void} onOpen
 * @property {() => void} onDecided
 */

/** @typedef {{ kind: string, time: number, text?: string }} CallMark */
/** @typedef {{ name: string, badge: State | null, marks: CallMark[], description: string }} About */

const LAST_PLACE = 0.92; // a name that begins behind it would end outside

/** @param {PictureProps} props */
export function Picture({ run, now, saying, open, onOpen, onDecided }) {
    const lanes = lanesOf(run, now);
    if (lanes.rows.length === 0) {
        return html`<p class="hint">${isOver(run) ? "The run ended before the model had written anything." : "Nothing has happened yet."}</p>`;
    }
    const scale = scaleOf(lanes.from, lanes.to, lanes.busy);
    return html`<div class="line" role="group" aria-label="Time line">
        <${Axis} scale=${scale} />
        <ol class="line-rows">
            ${lanes.rows.map(
                (row) => html`
                <${Row} key=${row.key} row=${row} run=${run} scale=${scale} marks=${lanes.marks} saying=${saying}
                    open=${open === row.key} onOpen=${() => onOpen(open === row.key ? "" : row.key)} onDecided=${onDecided} />`,
            )}
        </ol>
    </div>`;
}

/** @param {{ scale: Scale }} props */
function Axis({ scale }) {
    return html`<div class="line-axis" aria-hidden="true">
        <div class="line-track">
            ${scale.ticks.map((tick) => html`<span key=${tick.place} class=${tick.place > LAST_PLACE ? "line-tick line-tick-last" : "line-tick"} style=${{ left: percent(tick.place) }}>${tick.text}</span>`)}
            ${scale.cuts.map((cut) => html`<span key=${cut.left} class="line-cut-name" style=${{ left: percent(cut.left + cut.width / 2) }}>${duration(cut.seconds)}</span>`)}
        </div>
    </div>`;
}

/** @param {RowProps} props */
function Row({ row, run, scale, marks, saying, open, onOpen, onDecided }) {
    const about = aboutRow(row, run);
    const seconds = lengthOf(row);
    const id = `details-${row.key}`;
    return html`<li class=${`line-row line-${row.kind}`}>
        <button type="button" class="line-head" aria-expanded=${open} aria-controls=${id} onClick=${onOpen}>
            <span class="line-name">
                <${Icon} name=${row.kind === "call" ? "tools" : "chat"} size="15" />
                <span class="line-words">${about.name}</span>
                ${about.badge && html`<span class=${`badge badge-${about.badge.tone}`}>${about.badge.name}</span>`}
            </span>
            <span class="line-track" aria-hidden="true">
                ${scale.cuts.map((cut) => html`<i key=${cut.left} class="line-cut" style=${{ left: percent(cut.left), width: percent(cut.width) }} />`)}
                ${row.bars.map((bar) => html`<i key=${bar.kind} class=${`line-bar bar-${bar.kind} ${bar.live ? "bar-live" : ""}`} style=${place(scale, bar)} />`)}
                ${about.marks.map((mark) => html`<i key=${mark.kind} class=${`line-mark mark-${mark.kind}`} style=${{ left: percent(scale.at(mark.time)) }}>${mark.text}</i>`)}
                ${marks.map((mark) => html`<i key=${mark.text} class="line-taken" style=${{ left: percent(scale.at(mark.time)) }} />`)}
            </span>
            <span class="line-length">${seconds === null ? "" : duration(seconds)}<span class="unseen">${about.description}</span></span>
        </button>
        ${
            open &&
            html`<div class="line-details" id=${id}>
            ${
                row.kind === "call"
                    ? html`<${CallDetails} call=${row.call} run=${run} onDecided=${onDecided} />`
                    : html`<${TurnDetails} step=${row.kind === "turn" ? row.step : undefined} saying=${saying} />`
            }
        </div>`
        }
    </li>`;
}

/**
 * @param {RowData} row
 * @param {RunDocument} run
 * @returns {About}
 */
function aboutRow(row, run) {
    if (row.kind !== "call") {
        const number = row.kind === "turn" ? row.step.step + 1 : run.steps.length + 1;
        const name = row.kind === "turn" && row.step.calls.length === 0 ? "Answer" : `Model, turn ${number}`;
        const thinking = row.kind === "thinking";
        return {
            name,
            badge: thinking ? { name: "Thinking", tone: "busy" } : null,
            marks: [],
            description: thinking ? "is working" : "",
        };
    }
    const { call } = row;
    const state = stateOfCall(call, run);
    /** @type {CallMark[]} */
    const marks = [];
    if (call.attempts > 1 && call.sent_at !== null) marks.push({ kind: "again", time: call.sent_at });
    if ((call.deliveries ?? 0) > 1 && call.sent_at !== null)
        marks.push({ kind: "delivered", time: call.sent_at, text: `${call.deliveries}×` });
    if (call.dead_letter && call.finished_at !== null) marks.push({ kind: "dead", time: call.finished_at });
    const often = oftenWords(call);
    const again = often.map((words) => `, ${words}`).join("");
    /** @type {State} */
    const badge =
        often.length > 0 && state.tone === "good"
            ? { name: sentence(often.join(", ")), tone: "warn" }
            : state;
    const shown = badge.tone === "good" ? null : badge;
    return {
        name: call.name,
        badge: shown,
        marks,
        description: shown === state ? again : `, ${state.name}${again}`,
    };
}

/**
 * @param {RunCall} call
 * @returns {string[]}
 */
function oftenWords({ attempts, deliveries }) {
    const words = [];
    if (attempts > 1) words.push(`sent ${attempts} times`);
    if (deliveries !== null && deliveries > 1) words.push(`delivered ${deliveries} times`);
    return words;
}

/** @param {string} words */
const sentence = (words) => words[0].toUpperCase() + words.slice(1);

/**
 * @param {Scale} scale
 * @param {Bar} bar
 */
function place(scale, bar) {
    const left = scale.at(bar.from);
    return { left: percent(left), width: percent(Math.max(scale.at(bar.to) - left, 0)) };
}

/** @param {number} part */
const percent = (part) => `${(part * 100).toFixed(3)}%`;
