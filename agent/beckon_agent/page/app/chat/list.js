// The list of conversations, with its search.
import { useEffect, useRef, useState } from "preact/hooks";
import { toError } from "../api.js";
import { html, onValue, stay } from "../html.js";
import { announceText } from "../live.js";
import { Icon } from "../parts/icons.js";
import { Busy, Notice } from "../parts/notice.js";
import { ago } from "../parts/times.js";
import { go, href } from "../route.js";
import { close, list, refresh, titleOf } from "./conversations.js";

/** @import { ListedConversation } from "beckon-api" */

const PAUSE = 250; // milliseconds after the last letter

/** @param {{ current: string, onChosen?: () => void }} props */
export function ConversationList({ current, onChosen }) {
    const { data, more, error } = list.value;
    useEffect(() => {
        refresh({ query: "" });
    }, []);
    return html`
        <a class="button new-chat" href=${href("chat")} onClick=${onChosen}><${Icon} name="plus" size="18" />New chat</a>
        <${Search} />
        ${error && html`<${Notice} tone="warn" text=${error} />`}
        ${data === null && !error && html`<${Busy} />`}
        ${
            data?.length === 0 &&
            !error &&
            html`<p class="hint list-empty">
            ${list.value.query ? "No conversation has these words." : "Your conversations will be listed here."}</p>`
        }
        <ul class="conversations">
            ${(data ?? []).map((one) => html`<${Row} key=${one.id} conversation=${one} current=${one.id === current} onChosen=${onChosen} />`)}
        </ul>
        ${more && html`<button class="button button-small" type="button" onClick=${() => refresh({ more: true })}>Show more</button>`}
    `;
}

function Search() {
    const timer = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
    useEffect(() => () => clearTimeout(timer.current), []);
    /** @param {string} query */
    const search = (query) => {
        clearTimeout(timer.current);
        timer.current = setTimeout(async () => {
            await refresh({ query });
            announceText(`${list.value.data?.length ?? 0} conversations.`);
        }, PAUSE);
    };
    return html`<form class="search" role="search" onSubmit=${stay}>
        <${Icon} name="search" size="16" />
        <input type="search" placeholder="Search" aria-label="Search conversations" onInput=${onValue((value) => search(value.trim()))} />
    </form>`;
}

/** @param {{ conversation: ListedConversation, current: boolean, onChosen?: () => void }} props */
function Row({ conversation, current, onChosen }) {
    const [confirming, setConfirming] = useState(false);
    const [problem, setProblem] = useState("");
    const title = titleOf(conversation);
    const remove = async () => {
        try {
            await close(conversation.id);
            announceText("The conversation is deleted.");
            if (current) go(href("chat"));
        } catch (error) {
            setProblem(toError(error).message);
        }
    };
    if (confirming)
        return html`<li class="conversation conversation-confirming">
        <p>Delete “${title}”? Its runs stay.</p>
        ${problem && html`<p class="problem" role="alert">${problem}</p>`}
        <div><button class="button button-small" type="button" ref=${focus} onClick=${remove}>Delete</button>
            <button class="button button-small" type="button" onClick=${() => setConfirming(false)}>Cancel</button></div>
    </li>`;
    return html`<li class="conversation">
        <a href=${href("chat", conversation.id)} aria-current=${current ? "page" : undefined} onClick=${onChosen}>
            <span class="conversation-title">${title}</span>
            <span class="conversation-time">${ago(conversation.used_at)}</span>
        </a>
        <button class="icon-button small" type="button" aria-label=${`Delete ${title}`} title="Delete" onClick=${() => setConfirming(true)}>
            <${Icon} name="trash" size="16" /></button>
    </li>`;
}

/** @param {HTMLElement | null} element */
const focus = (element) => element?.focus();
