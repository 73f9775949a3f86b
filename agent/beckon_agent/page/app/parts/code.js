// A block of code with its language and a button that copies it.
import { html } from "../html.js";
import { CopyButton } from "./copy.js";

/** @param {{ text: string, language?: string }} props */
export function CodeBlock({ text, language }) {
    const name = (language ?? "").split(/\s/)[0];
    return html`<figure class="code">
        <figcaption><span>${name || "text"}</span><${CopyButton} text=${text} label="Copy the code" /></figcaption>
        <pre tabindex="0" role="region" aria-label=${`Code, ${name || "text"}`}><code>${text}</code></pre>
    </figure>`;
}
