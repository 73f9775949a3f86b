// What went wrong or is missing, in words, with what to do about it.
import { html } from "../html.js";
import { Icon } from "./icons.js";

/** `tone` is "bad", "warn" or "plain"; the children are what can be done. */
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

export function Empty({ icon, title, text, children }) {
    return html`<div class="empty">
        ${icon && html`<${Icon} name=${icon} size="28" />`}
        <p class="empty-title">${title}</p>
        ${text && html`<p>${text}</p>`}
        ${children}
    </div>`;
}

export function Busy({ text = "Loading …" }) {
    return html`<p class="busy" role="status"><span class="dots" aria-hidden="true"><i /><i /><i /></span>${text}</p>`;
}
