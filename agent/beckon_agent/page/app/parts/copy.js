// A button that copies a text, and says so.
import { useEffect, useState } from "preact/hooks";
import { html } from "../html.js";
import { announceText } from "../live.js";
import { Icon } from "./icons.js";

const SHOWN = 1600; // milliseconds

/** @param {{ text: string, label?: string }} props */
export function CopyButton({ text, label = "Copy" }) {
    const [state, setState] = useState("");
    useEffect(() => {
        if (!state) return undefined;
        const timer = setTimeout(() => setState(""), SHOWN);
        return () => clearTimeout(timer);
    }, [state]);
    const copy = async () => {
        try {
            await navigator.clipboard.writeText(text);
            setState("check");
            announceText("Copied.");
        } catch {
            setState("close");
            announceText("The browser did not allow to copy.");
        }
    };
    return html`<button class="icon-button small" type="button" title=${label} aria-label=${label} onClick=${copy}>
        <${Icon} name=${state || "copy"} size="16" />
    </button>`;
}
