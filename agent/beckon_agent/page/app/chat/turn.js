// One turn: a question, and the answer with all steps to it.
import { useEffect, useRef, useState } from "preact/hooks";
import { html, onValue } from "../html.js";
import { CopyButton } from "../parts/copy.js";
import { Icon } from "../parts/icons.js";
import { Markdown } from "../parts/markdown.js";
import { Notice } from "../parts/notice.js";
import { duration } from "../parts/times.js";
import { href } from "../route.js";
import { citedPages, isForm, isOver, textOf } from "./answer.js";
import { ApprovalCard } from "./approval.js";
import { shownContent } from "./attachments.js";
import { CallCard } from "./call.js";

/** @import { TargetedKeyboardEvent } from "preact" */
/** @import { Answer as AnswerData, ShownItem } from "./answer.js" */
/** @import { Content, ShownFile } from "./attachments.js" */
/** @import { Turn as TurnData } from "./history.js" */
/** @import { Thread } from "./thread.js" */

/** @typedef {{ thread: Thread, turn: TurnData }} TurnProps */

/** @type {Record<string, string>} */
const CUT = {
    max_output_tokens: "The answer is cut short: a limit on tokens was reached.",
    max_messages: "The answer is cut short: the limit on steps or time of this agent was reached.",
    content_filter: "The answer is cut short: the model's provider filtered it.",
    incomplete: "The answer is incomplete: the model's server ended it in the middle.",
};

/** @param {TurnProps & { isLast: boolean }} props */
export function Turn({ thread, turn, isLast }) {
    thread.watch();
    const last = turn.answers.at(-1);
    const under = last && !isOver(last) && !last.failure;
    return html`<article class="turn" aria-label="Question and answer">
        <${Question} thread=${thread} turn=${turn} locked=${thread.busy} />
        <div class="answer" aria-busy=${under && !last.waits ? "true" : undefined}>
            ${turn.answers.map(
                (answer, index) => html`
                <${Answer} key=${index} thread=${thread} turn=${turn} answer=${answer} next=${turn.answers[index + 1]} />`,
            )}
            ${last && !under && html`<${Footer} thread=${thread} turn=${turn} answer=${last} isLast=${isLast} />`}
        </div>
    </article>`;
}

/** @param {TurnProps & { locked: boolean }} props */
function Question({ thread, turn, locked }) {
    thread.watch();
    const { text, files } = shownContent(turn.question);
    const [editing, edit] = useState(false);
    /** @param {string} changed */
    const save = (changed) => {
        edit(false);
        thread.repeatTurn(turn, replaced(turn.question, text, changed));
    };
    if (editing) return html`<${Editor} text=${text} onCancel=${() => edit(false)} onSave=${save} />`;
    return html`<div class="question">
        <h2 class="unseen">Your question</h2>
        <div class="bubble">
            ${files.length > 0 && html`<div class="files">${files.map((file, index) => html`<${Attached} key=${index} file=${file} />`)}</div>`}
            ${text && html`<p>${text}</p>`}
        </div>
        <button class="icon-button small" type="button" title="Edit" aria-label="Edit the question" disabled=${locked}
            onClick=${() => edit(true)}><${Icon} name="edit" size="16" /></button>
    </div>`;
}

/** @param {{ text: string, onSave: (text: string) => void, onCancel: () => void }} props */
function Editor({ text, onSave, onCancel }) {
    const [value, setValue] = useState(text);
    const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
    useEffect(() => {
        field.current?.focus();
        field.current?.setSelectionRange(text.length, text.length);
    }, []);
    /** @param {Event} [event] */
    const submit = (event) => {
        event?.preventDefault();
        if (value.trim()) onSave(value.trim());
    };
    /** @param {TargetedKeyboardEvent<HTMLTextAreaElement>} event */
    const keys = (event) => {
        if (event.key === "Escape") onCancel();
        if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) submit();
    };
    return html`<form class="editor" onSubmit=${submit}>
        <label class="field"><span>Edit the question</span>
            <textarea ref=${field} rows="3" value=${value} onInput=${onValue(setValue)} onKeyDown=${keys} />
        </label>
        <p class="hint">The changed question is sent again; all later turns are removed from the conversation.</p>
        <div class="editor-deeds">
            <button class="button button-strong button-small" type="submit" disabled=${!value.trim()}>Ask again</button>
            <button class="button button-small" type="button" onClick=${onCancel}>Cancel</button>
        </div>
    </form>`;
}

/** @param {{ file: ShownFile, onRemove?: () => void }} props */
export function Attached({ file, onRemove }) {
    return html`<div class=${`file file-${file.kind}`}>
        ${
            file.kind === "image" && file.url
                ? html`<img src=${file.url} alt=${file.name} />`
                : file.kind === "sound" && file.url
                  ? html`<audio controls src=${file.url} aria-label=${file.name}></audio>`
                  : html`<${Icon} name="file" size="16" /><span>${file.name}</span>`
        }
        ${
            onRemove &&
            html`<button class="icon-button small" type="button" aria-label=${`Remove ${file.name}`} onClick=${onRemove}>
            <${Icon} name="close" size="14" /></button>`
        }
    </div>`;
}

/** @param {TurnProps & { answer: AnswerData, next?: AnswerData }} props */
function Answer({ thread, turn, answer, next }) {
    thread.watch();
    const waitsForModel = !isOver(answer) && !answer.waits && !answer.failure && !isTalking(answer);
    return html`
        ${answer.items.filter(Boolean).map(
            (shown) => html`
            <${Item} key=${shown.id} shown=${shown} thread=${thread} turn=${turn} answer=${answer} next=${next} />`,
        )}
        ${answer.refusal && html`<${Notice} tone="warn" text=${answer.refusal} />`}
        ${
            (waitsForModel || answer.resuming) &&
            html`<p class="busy"><span class="dots" aria-hidden="true"><i /><i /><i /></span>
            ${answer.stopping ? "Stopping …" : answer.resuming ? "The connection broke. Connecting again …" : "Working …"}</p>`
        }
    `;
}

/** @param {TurnProps & { shown: ShownItem, answer: AnswerData, next?: AnswerData }} props */
function Item({ shown, thread, turn, answer, next }) {
    thread.watch();
    /** @param {boolean} approve */
    const decide = (approve) => thread.decide(turn, answer, shown.id, approve);
    switch (shown.item.type) {
        case "message":
            return html`${shown.text && html`<${Markdown} text=${shown.text} />`}<${Cited} pages=${citedPages(shown.item)} />`;
        case "reasoning":
            return html`<${Thought} text=${shown.text} />`;
        case "mcp_call":
            return html`<${CallCard} shown=${shown} run=${turn.run} />`;
        case "mcp_approval_request": {
            if (isForm(shown)) return null; // the card of its call has it
            const over = answer.status === "cancelled" || Boolean(next && !next.waits);
            return html`<${ApprovalCard} item=${shown.item} run=${turn.run} over=${over} decided=${answer.decided[shown.id]}
                onDecide=${decide} />`;
        }
        default:
            return null;
    }
}

/** @param {{ pages: { url: string, title: string }[] }} props */
function Cited({ pages }) {
    if (pages.length === 0) return null;
    return html`<ol class="cited" aria-label="Sources of the answer">${pages.map(
        ({ url, title }) =>
            html`<li key=${url}><a href=${url} target="_blank" rel="noopener noreferrer nofollow">${title}</a></li>`,
    )}</ol>`;
}

/** @param {{ text: string }} props */
function Thought({ text }) {
    return text
        ? html`<details class="thought"><summary>Thoughts</summary><${Markdown} text=${text} /></details>`
        : null;
}

/** @param {TurnProps & { answer: AnswerData, isLast: boolean }} props */
function Footer({ thread, turn, answer, isLast }) {
    thread.watch();
    const text = turn.answers.map(textOf).filter(Boolean).join("\n\n");
    const problem =
        answer.failure?.message || (answer.status === "failed" && (answer.error || "The run failed."));
    const cut = answer.status === "incomplete" && (CUT[answer.reason] ?? "The answer is cut short.");
    /** @param {string} label */
    const retry = (
        label,
    ) => html`<button class="button button-small" type="button" onClick=${() => thread.repeatTurn(turn)}>
        <${Icon} name="retry" size="16" />${label}</button>`;
    return html`
        ${problem && html`<${Notice} title="That did not work" text=${problem}>${retry("Try again")}<//>`}
        ${cut && html`<${Notice} tone="warn" text=${cut} />`}
        ${answer.status === "cancelled" && html`<${Notice} tone="plain" text="Stopped. Completed tool calls are not undone.">${retry("Ask again")}<//>`}
        <footer class="turn-end">
            ${text && html`<${CopyButton} text=${text} label="Copy the answer" />`}
            ${
                isLast &&
                !problem &&
                answer.status !== "cancelled" &&
                turn.run &&
                html`
                <button class="icon-button small" type="button" title="Ask again" aria-label="Ask again" disabled=${thread.busy}
                    onClick=${() => thread.repeatTurn(turn)}><${Icon} name="retry" size="16" /></button>`
            }
            ${turn.run && html`<a class="run-link" href=${href("runs", turn.run)}>${runInWords(turn)}</a>`}
        </footer>`;
}

/** @param {TurnData} turn */
function runInWords(turn) {
    const known = turn.answers.map((answer) => answer.seconds).filter((one) => one !== null);
    const seconds = known.reduce((sum, one) => sum + one, 0);
    const tokens = turn.answers.at(-1)?.usage?.total_tokens;
    return ["Run", seconds ? duration(seconds) : "", tokens ? `${tokens.toLocaleString("en")} tokens` : ""]
        .filter(Boolean)
        .join(" · ");
}

/** @param {AnswerData} answer */
function isTalking(answer) {
    const last = answer.items.at(-1);
    return (
        last?.item.type === "message" ||
        (last?.item.type === "mcp_call" && last.item.status === "in_progress")
    );
}

/**
 * The content of a question with other words, and its files as they were.
 * @param {Content} question
 * @param {string} before
 * @param {string} words
 * @returns {Content}
 */
function replaced(question, before, words) {
    if (typeof question === "string")
        return question.startsWith(before) ? words + question.slice(before.length) : words;
    let done = false;
    const parts = question.map((part) => {
        const { type, text } = part;
        if (done || type !== "input_text" || typeof text !== "string" || !text.startsWith(before))
            return part;
        done = true;
        return { ...part, text: words + text.slice(before.length) };
    });
    return done ? parts : [{ type: "input_text", text: words }, ...parts];
}
