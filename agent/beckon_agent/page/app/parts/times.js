// Durations and dates in few words.

const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [
    ["day", 86_400],
    ["hour", 3_600],
    ["minute", 60],
];

/**
 * Seconds as "340 ms", "2.4 s" or "3 min 5 s".
 * @param {number} seconds
 */
export function duration(seconds) {
    if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
    if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
    return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/**
 * A time in Unix seconds as "2 hours ago"; a date where it is over a week ago.
 * @param {number} time
 */
export function ago(time, now = Date.now() / 1000) {
    const passed = now - time;
    if (passed > 7 * 86_400) return new Date(time * 1000).toLocaleDateString();
    for (const [unit, seconds] of UNITS) {
        if (passed >= seconds) return RELATIVE.format(-Math.floor(passed / seconds), unit);
    }
    return "just now";
}
