// What is around every view: the bar at the top, the sign-in, and the announcements for screen readers.
import { useEffect, useRef, useState } from "preact/hooks";
import { followAgents, loadAgents } from "./agents.js";
import { toError } from "./api.js";
import { html } from "./html.js";
import { announcement } from "./live.js";
import { Icon, Mark } from "./parts/icons.js";
import { Busy, Notice } from "./parts/notice.js";
import { href, route } from "./route.js";
import { caller, key, signOut, wanted } from "./session.js";
import { SignIn } from "./sign-in.js";
import { dark, toggleTheme } from "./theme.js";
import { ChatView } from "./views/chat.js";
import { RunsView } from "./views/runs.js";
import { ToolsView } from "./views/tools.js";

/** @import { Route } from "./route.js" */
/** @import { FunctionComponent } from "preact" */

// Each view gets the route: { view, parts, query }.
/** @type {Record<string, { name: string, icon: string, view: FunctionComponent<{ route: Route }> }>} */
const VIEWS = {
    chat: { name: "Chat", icon: "chat", view: ChatView },
    tools: { name: "Tools", icon: "tools", view: ToolsView },
    runs: { name: "Runs", icon: "runs", view: RunsView },
};

export function Shell() {
    const here = VIEWS[route.value.view] ? route.value.view : "chat";
    const main = useRef(/** @type {HTMLElement | null} */ (null));
    const first = useRef(true);
    useEffect(() => {
        document.title = `${VIEWS[here].name} · Beckon`;
        // After a link, the keyboard and the screen reader start at the new view.
        if (!first.current) main.current?.focus();
        first.current = false;
    }, [here]);
    /** @param {Event} event */
    const skip = (event) => {
        event.preventDefault();
        main.current?.focus();
    };
    return html`
        <a class="skip" href="#main" onClick=${skip}>
            Skip to the content
        </a>
        <${Bar} here=${here} />
        <main id="main" class=${`main main-${here}`} tabindex="-1" ref=${main}>
            ${wanted.value ? html`<${SignIn} />` : html`<${LetIn} key=${caller.value} here=${here} />`}
        </main>
        <div class="unseen" role="status" aria-live="polite">${announcement.value}</div>
    `;
}

/** @param {{ here: string }} props */
function Bar({ here }) {
    const theme = dark.value ? "Light theme" : "Dark theme";
    return html`<header class="bar">
        <a class="brand" href=${href("chat")} aria-label="Beckon"><${Mark} /><span>Beckon</span></a>
        <nav class="views" aria-label="Views">
            ${Object.entries(VIEWS).map(
                ([name, view]) => html`
                <a key=${name} href=${href(name)} aria-current=${name === here ? "page" : undefined}>
                    <${Icon} name=${view.icon} size="18" /><span>${view.name}</span>
                </a>`,
            )}
        </nav>
        <div class="bar-end">
            ${
                key.value &&
                !wanted.value &&
                html`
                <button class="icon-button" type="button" title="Sign out" aria-label="Sign out" onClick=${signOut}>
                    <${Icon} name="out" />
                </button>`
            }
            <button class="icon-button" type="button" title=${theme} aria-label=${theme} onClick=${toggleTheme}>
                <${Icon} name=${dark.value ? "sun" : "moon"} />
            </button>
        </div>
    </header>`;
}

/**
 * A view, once the agent has answered this user.
 * @param {{ here: string }} props
 */
function LetIn({ here }) {
    const [state, setState] = useState(
        /** @type {{ known: boolean, error: Error | null }} */ ({ known: false, error: null }),
    );
    const load = async () => {
        setState({ known: false, error: null });
        try {
            await loadAgents();
            setState({ known: true, error: null });
        } catch (error) {
            setState({ known: false, error: toError(error) });
        }
    };
    useEffect(() => {
        load();
    }, []);
    useEffect(() => (state.known ? followAgents() : undefined), [state.known]);
    if (state.error) {
        return html`<div class="page">
            <${Notice} title="Cannot reach the agent" text=${state.error.message}>
                <button class="button" type="button" onClick=${load}>Try again</button>
            <//>
        </div>`;
    }
    if (!state.known) return html`<div class="page"><${Busy} text="Connecting to the agent …" /></div>`;
    const View = VIEWS[here].view;
    return html`<${View} route=${route.value} />`;
}
