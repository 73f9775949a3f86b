// The view Chat: the conversations, the one that is open, and the place to write.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { agent } from "../agents.js";
import { get } from "../api.js";
import { Composer } from "../chat/composer.js";
import { titleOfId } from "../chat/conversations.js";
import { ConversationList } from "../chat/list.js";
import { threadOf } from "../chat/thread.js";
import { Turn } from "../chat/turn.js";
import { html } from "../html.js";
import { Icon, Mark } from "../parts/icons.js";
import { Busy, Notice } from "../parts/notice.js";
import { href } from "../route.js";

/** @import { ToolDocument } from "beckon-api" */
/** @import { Thread } from "../chat/thread.js" */
/** @import { Route } from "../route.js" */

const NEAR = 80; // pixels from the end: nearer than this, new text scrolls into view
const SHOWN_TOOLS = 8;

/** @param {{ route: Route }} props */
export function ChatView({ route }) {
    const thread = threadOf(route.parts[0] ?? "");
    const drawer = useRef(/** @type {HTMLDialogElement | null} */ (null));
    thread.watch();
    useEffect(() => {
        thread.wake();
        return () => thread.rest();
    }, [thread]);
    const shut = () => drawer.current?.close();
    /** @param {Event} event */
    const shutBeside = (event) => {
        if (event.target === drawer.current) shut();
    };
    return html`<div class="chat">
        <h1 class="unseen">Chat</h1>
        <aside class="chat-side" aria-label="Conversations"><${ConversationList} current=${thread.id} /></aside>
        <dialog class="chat-drawer" ref=${drawer} aria-label="Conversations" onClick=${shutBeside}>
            <div class="drawer-room">
                <button class="icon-button drawer-close" type="button" aria-label="Close" onClick=${shut}><${Icon} name="close" /></button>
                <${ConversationList} current=${thread.id} onChosen=${shut} />
            </div>
        </dialog>
        <section class="chat-main" aria-label="Conversation">
            <div class="chat-head">
                <button class="icon-button" type="button" aria-label="Conversations" title="Conversations"
                    onClick=${() => drawer.current?.showModal()}><${Icon} name="menu" /></button>
                <p>${thread.id ? titleOfId(thread.id) : ""}</p>
                <a class="icon-button" href=${href("chat")} aria-label="New chat" title="New chat"><${Icon} name="plus" /></a>
            </div>
            <${Turns} thread=${thread} />
            <${Composer} thread=${thread} />
        </section>
    </div>`;
}

/** @param {{ thread: Thread }} props */
function Turns({ thread }) {
    const room = useRef(/** @type {HTMLDivElement | null} */ (null));
    const follows = useRef(true);
    const [behind, setBehind] = useState(false);
    const stamp = thread.watch();
    const last = thread.turns.at(-1)?.key;
    const toEnd = () => {
        if (room.current) room.current.scrollTop = room.current.scrollHeight;
    };
    useLayoutEffect(() => {
        follows.current = true;
        toEnd();
    }, [thread, last, thread.loading]);
    useLayoutEffect(() => {
        if (follows.current) toEnd();
    }, [stamp]);
    useEffect(() => {
        // Pictures and players take their place after they were drawn.
        const watcher = new ResizeObserver(() => {
            if (follows.current) toEnd();
        });
        const content = room.current?.firstElementChild;
        if (content) watcher.observe(content);
        return () => watcher.disconnect();
    }, []);
    const scrolled = () => {
        if (!room.current) return; // the view is gone, and its last scroll event came late
        const { scrollHeight, scrollTop, clientHeight } = room.current;
        follows.current = scrollHeight - scrollTop - clientHeight < NEAR;
        setBehind(!follows.current);
    };
    return html`<div class="turns" ref=${room} onScroll=${scrolled} tabindex="-1">
        <div class="turns-room">
            ${thread.loading && html`<${Busy} text="Reading the conversation …" />`}
            ${
                thread.failure &&
                html`<${Notice} title="The conversation cannot be shown" text=${thread.failure.message}>
                <button class="button button-small" type="button" onClick=${() => thread.load()}>Try again</button><//>`
            }
            ${!thread.loading && !thread.failure && thread.turns.length === 0 && html`<${Welcome} />`}
            ${thread.more && html`<p class="hint">Earlier questions are listed under <a href=${href("runs")}>Runs</a>.</p>`}
            ${thread.turns.map(
                (turn) => html`
                <${Turn} key=${turn.key} thread=${thread} turn=${turn} isLast=${turn.key === last} />`,
            )}
        </div>
        ${
            behind &&
            html`<button class="to-end button button-small" type="button" onClick=${toEnd}>
            <${Icon} name="down" size="16" />Latest</button>`
        }
    </div>`;
}

function Welcome() {
    const [tools, setTools] = useState(/** @type {ToolDocument[] | null} */ (null));
    const name = agent.value;
    useEffect(() => {
        const leaving = new AbortController();
        get("tools", { params: { agent: name }, signal: leaving.signal }).then(
            (found) => setTools(found.tools),
            () => {
                // The welcome does without the tools.
            },
        );
        return () => leaving.abort();
    }, [name]);
    return html`<div class="welcome">
        <${Mark} size="44" />
        <p class="welcome-title">What should be done?</p>
        ${
            tools !== null &&
            tools.length > 0 &&
            html`
            <p>${name} can call ${tools.length === 1 ? "one tool" : `${tools.length} tools`} of the cluster:</p>
            <ul class="welcome-tools">
                ${tools.slice(0, SHOWN_TOOLS).map(
                    (tool) => html`
                    <li key=${tool.name}><a href=${href("tools", tool.name)} title=${tool.description}>${tool.name}</a></li>`,
                )}
                ${tools.length > SHOWN_TOOLS && html`<li><a href=${href("tools")}>and ${tools.length - SHOWN_TOOLS} more</a></li>`}
            </ul>`
        }
        ${tools?.length === 0 && html`<p>${name} has no tools yet. <a href=${href("tools")}>What is missing?</a></p>`}
    </div>`;
}
