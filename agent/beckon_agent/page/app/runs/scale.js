// From times to places: time runs evenly while something works, and where a run only waits it is cut short.

import { duration } from "../parts/times.js";

/** @typedef {[number, number]} Span */
/** @typedef {{ begin: number, end: number, left: number, wide: number, cut: boolean }} Piece */
/** @typedef {{ place: number, text: string }} Tick */
/** @typedef {{ left: number, width: number, seconds: number }} Cut */
/** @typedef {{ at: (time: number) => number, cuts: Cut[], ticks: Tick[] }} Scale */

const SHARE = 0.14; // of the time that is worked, for one wait
const SHORTEST = 1; // seconds; no shorter wait is cut
const TICKS = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600,
];
const WANTED = 5;

/**
 * `busy` are spans [from, to] of work. Returns { at(time) → 0…1, cuts, ticks }: the waits
 * that were cut short, and the moments to write below the picture.
 * @param {number} from
 * @param {number} to
 * @param {Span[]} busy
 * @returns {Scale}
 */
export function scaleOf(from, to, busy) {
    const spans = merged(busy, from, to);
    const worked = spans.reduce((sum, [begin, end]) => sum + end - begin, 0);
    const longest = Math.max(worked * SHARE, (to - from) / 1e6);
    /** @type {Piece[]} */
    const pieces = [];
    let width = 0;
    /**
     * @param {number} begin
     * @param {number} end
     * @param {boolean} idle
     */
    const add = (begin, end, idle) => {
        if (end <= begin) return;
        const cut = idle && worked > 0 && end - begin > Math.max(longest * 1.5, SHORTEST);
        const wide = cut ? longest : end - begin;
        pieces.push({ begin, end, left: width, wide, cut });
        width += wide;
    };
    let now = from;
    for (const [begin, end] of spans) {
        add(now, begin, true);
        add(begin, end, false);
        now = end;
    }
    add(now, to, true);
    /** @param {number} time */
    const at = (time) => {
        const piece = pieces.find((one) => time <= one.end) ?? pieces.at(-1);
        if (!piece) return 0;
        const inside = Math.min(Math.max((time - piece.begin) / (piece.end - piece.begin), 0), 1);
        return (piece.left + inside * piece.wide) / width;
    };
    const cuts = pieces
        .filter((one) => one.cut)
        .map((one) => ({
            left: one.left / width,
            width: one.wide / width,
            seconds: one.end - one.begin,
        }));
    // The length of a wait is written where it was cut, and a tick beside it would cover it.
    /** @param {Tick} tick */
    const isFree = ({ place }) =>
        cuts.every((cut) => Math.abs(cut.left + cut.width / 2 - place - 0.05) > 0.11);
    return { at, cuts, ticks: ticksOf(pieces, width, from).filter(isFree) };
}

/**
 * A time on the scale, as exact as its neighbours are near.
 * @param {number} seconds
 * @param {number} step
 */
function written(seconds, step) {
    if (step >= 1 || seconds < 1) return duration(seconds);
    return `${seconds.toFixed(Math.ceil(-Math.log10(step)))} s`;
}

/**
 * @param {Span[]} spans
 * @param {number} from
 * @param {number} to
 */
function merged(spans, from, to) {
    const inside = spans
        .map(([begin, end]) => /** @type {Span} */ ([Math.max(begin, from), Math.min(end, to)]))
        .filter(([begin, end]) => end > begin)
        .sort((a, b) => a[0] - b[0]);
    /** @type {Span[]} */
    const found = [];
    for (const [begin, end] of inside) {
        const last = found.at(-1);
        if (last && begin <= last[1]) last[1] = Math.max(last[1], end);
        else found.push([begin, end]);
    }
    return found;
}

/**
 * @param {Piece[]} pieces
 * @param {number} width
 * @param {number} from
 */
function ticksOf(pieces, width, from) {
    const even = pieces.filter((one) => !one.cut);
    const shown = even.reduce((sum, one) => sum + one.wide, 0);
    const step = TICKS.find((one) => shown / one <= WANTED) ?? 7200;
    /** @type {Tick[]} */
    const ticks = [];
    for (const piece of even) {
        for (
            let n = Math.ceil((piece.begin - from) / step - 1e-9);
            from + n * step <= piece.end + step / 1e6;
            n += 1
        ) {
            const place = (piece.left + (from + n * step - piece.begin)) / width;
            if (!ticks.some((one) => Math.abs(one.place - place) < 0.08) && place <= 0.97)
                ticks.push({ place, text: written(n * step, step) });
        }
    }
    return ticks;
}
