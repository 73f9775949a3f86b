// Markdown that a model wrote: drawn block by block, so that a growing text is not drawn anew, and cleaned.
import DOMPurify from "dompurify";
import { Marked } from "marked";
import { html } from "../html.js";
import { CodeBlock } from "./code.js";
import { memo } from "./memo.js";

/** @import { Token } from "marked" */

const marked = new Marked({ gfm: true, breaks: true });
marked.use({
    renderer: {
        // The page has headings of its own above those of an answer.
        heading({ tokens, depth }) {
            const level = Math.min(depth + 2, 6);
            return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
        },
        checkbox({ checked }) {
            return checked ? "☑ " : "☐ ";
        },
    },
});

const CLEAN = {
    USE_PROFILES: { html: true },
    FORBID_TAGS: [
        "audio",
        "button",
        "dialog",
        "form",
        "input",
        "picture",
        "select",
        "source",
        "style",
        "textarea",
        "video",
    ],
    FORBID_ATTR: ["class", "id", "name", "style", "srcset"],
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|data:image\/)/i,
    ADD_URI_SAFE_ATTR: ["align", "start"], // of columns and lists: else these, too, would have to be addresses
    RETURN_TRUSTED_TYPE: true,
};

DOMPurify.addHook("uponSanitizeElement", (node, { tagName }) => {
    // Loading a picture from elsewhere sends its address there, with all that is in it: it becomes a link.
    if (tagName !== "img" || !(node instanceof Element)) return;
    const source = node.getAttribute("src") ?? "";
    if (source.startsWith("data:image/")) return;
    const link = document.createElement("a");
    link.setAttribute("href", source);
    link.textContent = node.getAttribute("alt") || source;
    node.after(link); // behind it, where the cleaning goes on
    node.remove();
});

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
    if (node.tagName !== "A" || !node.hasAttribute("href")) return;
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer nofollow");
});

export const Markdown = memo(
    /** @param {{ text: string }} props */
    ({ text }) => html`<div class="markdown">
    ${marked.lexer(text).map((token, index) => html`<${Block} key=${index} raw=${token.raw} token=${token} />`)}
</div>`,
    (before, after) => before.text === after.text,
);

const Block = memo(
    /** @param {{ raw: string, token: Token }} props */
    ({ token }) => {
        if (token.type === "space") return null;
        if (token.type === "code") return html`<${CodeBlock} text=${token.text} language=${token.lang} />`;
        const clean = DOMPurify.sanitize(marked.parser([token]), CLEAN);
        const scrolls = token.type === "table";
        return html`<div class=${scrolls ? "block scrolls" : "block"} tabindex=${scrolls ? 0 : undefined}
        role=${scrolls ? "region" : undefined} aria-label=${scrolls ? "Table" : undefined}
        dangerouslySetInnerHTML=${{ __html: clean }} />`;
    },
    (before, after) => before.raw === after.raw,
);
