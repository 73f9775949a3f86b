// The CloudEvents of calls and replies, as they were sent and as they came.
import { useEffect, useState } from "preact/hooks";
import { get, toError } from "../api.js";
import { html } from "../html.js";
import { CopyButton } from "../parts/copy.js";
import { Json } from "../parts/json.js";
import { Busy, Notice } from "../parts/notice.js";

/** @import { ExchangedEvents, RunCall } from "beckon-api" */

/** @typedef {Omit<ExchangedEvents, "id" | "name">} ExchangeData */
/** @typedef {{ data: ExchangedEvents[] | null, more: boolean }} Pages */

const PAGE = 20;

/**
 * Both events of one call; loaded again whenever its state changes.
 * @param {{ run: string, call: RunCall }} props
 */
export function CallEvents({ run, call }) {
    const [found, setFound] = useState(/** @type {ExchangeData | null} */ (null));
    const [problem, setProblem] = useState("");
    useEffect(() => {
        const reading = new AbortController();
        exchangeOf(run, call.event_id, reading.signal).then(setFound, (error) => {
            if (!reading.signal.aborted) setProblem(toError(error).message);
        });
        return () => reading.abort();
    }, [run, call.event_id, call.state]);
    if (problem) return html`<${Notice} text=${problem} />`;
    if (!found) return html`<${Busy} />`;
    return html`<${Exchange} exchange=${found} />`;
}

/**
 * All events of a run, page by page.
 * @param {{ run: string, stamp: string }} props
 */
export function RunEvents({ run, stamp }) {
    const [pages, setPages] = useState(/** @type {Pages} */ ({ data: null, more: false }));
    const [problem, setProblem] = useState("");
    /**
     * @param {ExchangedEvents[]} before
     * @param {AbortSignal} [signal]
     */
    const load = async (before, signal) => {
        try {
            const page = await get(`runs/${run}/events`, {
                signal,
                params: { limit: PAGE, after: before.at(-1)?.id },
            });
            setPages({ data: [...before, ...page.data], more: page.has_more });
        } catch (error) {
            if (!signal?.aborted) setProblem(toError(error).message);
        }
    };
    useEffect(() => {
        const reading = new AbortController();
        load([], reading.signal);
        return () => reading.abort();
    }, [run, stamp]);
    if (problem) return html`<${Notice} text=${problem} />`;
    if (!pages.data) return html`<${Busy} />`;
    const shown = pages.data;
    if (shown.length === 0) return html`<p class="hint">The run made no calls.</p>`;
    return html`
        ${shown.map(
            (one) => html`<section key=${one.id} class="exchange-of" aria-label=${`Events of ${one.name}`}>
            <h3>${one.name} <code>${one.id}</code></h3><${Exchange} exchange=${one} />
        </section>`,
        )}
        ${pages.more && html`<button class="button button-small" type="button" onClick=${() => load(shown)}>Show more</button>`}
    `;
}

/** @param {{ exchange: ExchangeData }} props */
function Exchange({ exchange }) {
    return html`<div class="details-both">
        <${One} title="Call" event=${exchange.call} omitted=${exchange.call_omitted} missing="Its event is stored once the call is answered." />
        ${
            exchange.problem
                ? html`<${One} title="Returned instead of a reply" event=${exchange.problem} omitted=${0} />`
                : html`<${One} title="Reply" event=${exchange.reply} omitted=${exchange.reply_omitted} missing="No reply event has come." />`
        }
    </div>`;
}

/** @param {{ title: string, event: unknown, omitted: number, missing?: string }} props */
function One({ title, event, omitted, missing }) {
    return html`<section>
        <h3>${title}${event && html`<${CopyButton} text=${JSON.stringify(event, null, 2)} label=${`Copy: ${title}`} />`}</h3>
        ${event ? html`<${Json} value=${event} label=${title} />` : html`<p class="hint">${missing}</p>`}
        ${omitted > 0 && html`<p class="hint">Its data (${omitted} bytes) are too large to store here.</p>`}
    </section>`;
}

/**
 * @param {string} run
 * @param {string} eventId
 * @param {AbortSignal} signal
 * @returns {Promise<ExchangeData>}
 */
async function exchangeOf(run, eventId, signal) {
    /** @type {string | undefined} */
    let after;
    for (;;) {
        const page = await get(`runs/${run}/events`, { signal, params: { limit: 100, after } });
        const found = page.data.find((one) => one.id === eventId);
        if (found) return found;
        if (!page.has_more)
            return { call: null, reply: null, problem: null, call_omitted: 0, reply_omitted: 0 };
        after = page.last_id;
    }
}
