// Notices of errors and of missing things, each with its cure.
import { html } from "../html.js";
import { Icon } from "./icons.js";

/** @import { ComponentChildren } from "preact" */

/**
 * `tone` is "bad", "warn" or "plain"; the children are what can be done.
 * @param {{ tone?: "bad" | "warn" | "plain", title?: string, text?: string, children?: ComponentChildren }} props
 */
export function Notice({ tone = "bad", title, text, children }) {
    return html`<div class=${`notice notice-${tone}`} role=${tone === "bad" ? "alert" : "note"}>
        <${Icon} name="warning" size="18" />
        <div class="notice-words">
            ${title && html`<p class="notice-title">${title}</p>`}
            ${text && html`<p>${text}</p>`}
        </div>
        ${children && html`<div class="notice-deeds">${children}</div>`}
    </div>`;
}

/** @param {{ icon?: string, title: string, text?: string, children?: ComponentChildren }} props */
export function Empty({ icon, title, text, children }) {
    return html`<div class="empty">
        ${icon && html`<${Icon} name=${icon} size="28" />`}
        <p class="empty-title">${title}</p>
        ${text && html`<p>${text}</p>`}
        ${children}
    </div>`;
}

/** @param {{ text?: string }} props */
export function Busy({ text = "Loading …" }) {
    return html`<p class="busy" role="status"><span class="dots" aria-hidden="true"><i /><i /><i /></span>${text}</p>`;
}
