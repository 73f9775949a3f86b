// Line drawings on a grid of 24, in the colour of the text around them; the text beside them has the meaning.
import { html } from "../html.js";

/** @type {Record<string, string>} */
const DRAWN = {
    arrow: "M12 19V5m-6 6 6-6 6 6",
    attach: "M20 11.5 12 19.4a5 5 0 0 1-7.1-7l8.4-8.3a3.3 3.3 0 0 1 4.7 4.7l-8.3 8.2a1.6 1.6 0 0 1-2.4-2.3l7.4-7.3",
    back: "M15 5l-7 7 7 7",
    chart: "M5 20V10m5 10V4m5 16v-7m5 7V8",
    chat: "M5 5h14a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1h-7l-5 4v-4H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1z",
    check: "M5 13l4.5 4.5L19 7",
    close: "M6 6l12 12M18 6L6 18",
    copy: "M9 9h10v11H9zM5 15V4h10",
    down: "M6 9l6 6 6-6",
    edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
    file: "M7 3h7l4 4v14H7zM14 3v5h4",
    menu: "M4 7h16M4 12h16M4 17h10",
    moon: "M20 14.5A8 8 0 0 1 9.5 4 8 8 0 1 0 20 14.5z",
    out: "M10 4H5v16h5M9 12h11m-4-4 4 4-4 4",
    plus: "M12 5v14M5 12h14",
    question: "M9 9.5a3 3 0 1 1 4.4 2.7c-.9.5-1.4 1.1-1.4 2.1m0 3v.1",
    retry: "M19 12a7 7 0 1 1-2.2-5.1M19 4v4h-4",
    runs: "M4 6h9M4 12h16M4 18h7M17 4v4M15 16v4",
    search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16.2 16.2 20 20",
    stop: "M7 7h10v10H7z",
    sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v2m0 14v2m9-9h-2M5 12H3m15.4-6.4L17 7M7 17l-1.4 1.4m12.8 0L17 17M7 7 5.6 5.6",
    table: "M4 5h16v14H4zM4 10h16M4 15h16M10 10v9",
    tools: "M14.5 6.5a4 4 0 0 1 5-1l-2.6 2.6.9 2 2.1.8L22 8.5a4 4 0 0 1-5.6 4L8 21l-3-3 8.5-8.5a4 4 0 0 1 1-3z",
    trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
    warning: "M12 4 3 20h18zM12 10v5m0 2.5v.1",
};

/** @param {{ name: string, size?: number | string }} props */
export function Icon({ name, size = 20 }) {
    return html`<svg class="icon" width=${size} height=${size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
        <path d=${DRAWN[name]} />
    </svg>`;
}

/**
 * The mark of the project: a light that is answered.
 * @param {{ size?: number | string }} props
 */
export function Mark({ size = 26 }) {
    return html`<svg class="mark" width=${size} height=${size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
        <path d="M5 19a14 14 0 0 1 14-14M9 19a10 10 0 0 1 10-10" />
        <circle cx="17" cy="17" r="3.2" />
    </svg>`;
}
