// Markdown that a model wrote: drawn block by block, so that a growing text is not drawn anew, and cleaned.
import DOMPurify from "dompurify";
import { Marked } from "marked";
import { memo } from "./memo.js";
import { html } from "../html.js";
import { CodeBlock } from "./code.js";

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
    FORBID_TAGS: ["audio", "button", "dialog", "form", "input", "picture", "select", "source", "style", "textarea", "video"],
    FORBID_ATTR: ["class", "id", "name", "style", "srcset"],
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|data:image\/)/i,
    ADD_URI_SAFE_ATTR: ["align", "start"], // of columns and lists: else these, too, would have to be addresses
    RETURN_TRUSTED_TYPE: true,
};

DOMPurify.addHook("uponSanitizeElement", (node, { tagName }) => {
    // A picture from elsewhere would tell that place what is in its address: it becomes a link to it.
    const source = tagName === "img" ? node.getAttribute("src") ?? "" : "data:image/";
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

export const Markdown = memo(({ text }) => html`<div class="markdown">
    ${marked.lexer(text).map((token, index) => html`<${Block} key=${index} raw=${token.raw} token=${token} />`)}
</div>`, (before, after) => before.text === after.text);

const Block = memo(({ token }) => {
    if (token.type === "space") return null;
    if (token.type === "code") return html`<${CodeBlock} text=${token.text} language=${token.lang} />`;
    const clean = DOMPurify.sanitize(marked.parser([token]), CLEAN);
    const scrolls = token.type === "table";
    return html`<div class=${scrolls ? "block scrolls" : "block"} tabindex=${scrolls ? 0 : undefined}
        role=${scrolls ? "region" : undefined} aria-label=${scrolls ? "Table" : undefined}
        dangerouslySetInnerHTML=${{ __html: clean }} />`;
}, (before, after) => before.raw === after.raw);
