// One conversation: its turns, and the requests that make them. Nothing here draws.
import { signal } from "@preact/signals";
import { agent } from "../agents.js";
import { ApiError, events, get, post, statusOf, toError } from "../api.js";
import { announceText } from "../live.js";
import { go, href, route } from "../route.js";
import { caller } from "../session.js";
import { apply, approvalsOf, isForm, isOver, needsDecision, newAnswer } from "./answer.js";
import { shownContent } from "./attachments.js";
import { branch, close, open, refresh, setTitle } from "./conversations.js";
import { callsOf, enrich, readTurns } from "./history.js";

/** @import { Answer, ShownItem } from "./answer.js" */
/** @import { Content } from "./attachments.js" */
/** @import { Turn } from "./history.js" */
/** @import { ResponseEvent } from "beckon-streams" */

const TRIES = 8;
const FIRST_PAUSE = 250; // milliseconds; doubles with every try
const PROGRESS = "beckon:mcp_call.progress"; // reports of working tools, which a request has to include
const LONG_STREAM = 5000; // milliseconds after which a stream that ends was a good one: proxies end long streams

/** @type {Map<string, Thread>} */
const threads = new Map();
/** @type {Thread | null} */
let fresh = null;

/**
 * The thread of a conversation, or the one that has no conversation yet; it lives on while another is shown.
 * @param {string} id
 */
export function threadOf(id) {
    if (!id) {
        fresh ??= new Thread("");
        return fresh;
    }
    const thread = threads.get(id) ?? new Thread(id);
    threads.set(id, thread);
    return thread;
}

// The next user must not see these threads.
caller.subscribe(() => {
    for (const thread of [...threads.values(), fresh]) thread?.leave();
    threads.clear();
    fresh = null;
});

export class Thread {
    /** @param {string} id */
    constructor(id) {
        this.id = id;
        /** @type {Turn[]} */
        this.turns = [];
        this.loading = Boolean(id);
        /** @type {Error | null} */
        this.failure = null;
        this.more = false;
        this.changed = signal(0);
        this.leaving = new AbortController();
        /** @type {AbortController | null} */
        this.resting = null;
        /** @type {number | null} */
        this.frame = null;
        if (id) this.load();
    }

    /** Whether an answer is in progress; one that waits for a person is not. */
    get busy() {
        const answer = this.turns.at(-1)?.answers.at(-1);
        return answer !== undefined && !answer.waits && !isOver(answer) && !answer.failure;
    }

    /** A component that calls this is drawn again whenever the thread changes. */
    watch() {
        return this.changed.value;
    }

    /** Redraws at the next frame, however often it is called before. */
    touch() {
        this.frame ??= requestAnimationFrame(() => {
            this.frame = null;
            this.changed.value += 1;
        });
    }

    leave() {
        this.leaving.abort();
    }

    async load() {
        this.loading = true;
        this.failure = null;
        this.touch();
        try {
            const { turns, more } = await readTurns(this.id);
            this.turns = turns;
            this.more = more;
            for (const turn of this.turns) this.goOn(turn);
        } catch (error) {
            this.failure = toError(error);
        }
        this.loading = false;
        this.touch();
    }

    /**
     * Asks something; `content` is as the API takes it.
     * @param {Content} content
     */
    async send(content) {
        const answer = newAnswer();
        const turn = {
            key: crypto.randomUUID(),
            run: "",
            question: content,
            answers: [answer],
            at: Date.now() / 1000,
        };
        this.turns.push(turn);
        this.touch();
        try {
            if (!this.id) await this.begin(content);
            const request = {
                model: agent.value,
                input: [{ type: "message", role: "user", content }],
                conversation: this.id,
                stream: true,
                background: true,
                include: [PROGRESS],
            };
            await this.follow(
                turn,
                answer,
                events("POST", "v1/responses", request, { signal: this.leaving.signal }),
            );
        } catch (error) {
            answer.failure = toError(error);
        }
        this.touch();
        refresh();
    }

    /**
     * Sends the question of a turn again, or another one in its place; later turns are removed.
     * @param {Turn} turn
     * @param {Content} [content]
     */
    async repeatTurn(turn, content = turn.question) {
        const place = this.turns.indexOf(turn);
        const last = turn.answers.at(-1);
        // A run that failed or was cancelled has left nothing in the conversation.
        const leftNothing =
            place === this.turns.length - 1 &&
            (!turn.run || last?.status === "failed" || last?.status === "cancelled");
        try {
            if (!leftNothing) {
                const before = this.turns.slice(0, place);
                const id = await branch(
                    before.map((one) => one.run),
                    turn.run,
                );
                await close(this.id).catch(() => {
                    // The old conversation stays in the list.
                });
                if (shownContent(content).text)
                    setTitle(id, shownContent((before[0] ?? { question: content }).question).text);
                this.move(id);
            }
        } catch (error) {
            if (last) last.failure = toError(error);
            this.touch();
            return;
        }
        this.turns.length = place;
        await this.send(content);
    }

    /** Stops the answer in progress; completed tool calls are not undone. */
    async stop() {
        const turn = this.turns.at(-1);
        const answer = turn?.answers.at(-1);
        if (!turn || !answer || isOver(answer)) return;
        answer.stopping = true;
        this.touch();
        if (turn.run) await this.cancel(turn, answer);
    }

    /**
     * @param {Turn} turn
     * @param {Answer} answer
     */
    async cancel(turn, answer) {
        try {
            await post(`v1/responses/${turn.run}/cancel`);
        } catch (error) {
            if (!isOver(answer)) answer.failure = toError(error);
        }
        this.touch();
    }

    /**
     * Says yes or no to a call; the run goes on once all questions of its response are answered.
     * @param {Turn} turn
     * @param {Answer} answer
     * @param {string} id
     * @param {boolean} approve
     */
    async decide(turn, answer, id, approve) {
        answer.decided = { ...answer.decided, [id]: approve };
        this.touch();
        const requests = approvalsOf(answer);
        if (!requests.every((one) => one.id in answer.decided)) return;
        const input = requests.map((one) => ({
            type: "mcp_approval_response",
            approval_request_id: one.id,
            approve: answer.decided[one.id],
        }));
        try {
            await post("v1/responses", { input, background: true });
            const next = turn.answers.at(-1);
            if (next) next.waits = false;
        } catch (error) {
            // The decision may have been made elsewhere: the next answer is followed all the same.
            if (statusOf(error) !== 409) answer.decided = {};
            answer.refusal = toError(error).message;
        }
        this.touch();
    }

    /** @param {Content} content */
    async begin(content) {
        const id = await open();
        setTitle(id, shownContent(content).text || "With a file");
        if (fresh === this) fresh = null;
        this.move(id);
    }

    /** @param {string} id */
    move(id) {
        const before = this.id;
        threads.delete(before);
        threads.set(id, this);
        this.id = id;
        const { view, parts } = route.value;
        // The address follows the thread, where it is the one that is shown.
        if (view === "chat" && (parts[0] ?? "") === before)
            go(href("chat", id), { replace: Boolean(before) });
    }

    /**
     * Follows a turn that was read while it was in progress.
     * @param {Turn} turn
     */
    async goOn(turn) {
        const answer = turn.answers.at(-1);
        if (!answer || !turn.run || (isOver(answer) && !needsDecision(answer))) return;
        if (isOver(answer)) await this.await(turn);
        else await this.follow(turn, answer, this.events(answer));
        this.touch();
    }

    /** @param {Answer} answer */
    events(answer) {
        const params = { stream: true, starting_after: answer.number, "include[]": PROGRESS };
        this.resting = new AbortController();
        return events("GET", `v1/responses/${answer.id}`, undefined, {
            params,
            signal: AbortSignal.any([this.leaving.signal, this.resting.signal]),
        });
    }

    /**
     * Reads a stream to the end of its response, and opens it again when it breaks.
     * @param {Turn} turn
     * @param {Answer} answer
     * @param {AsyncIterable<ResponseEvent>} opened
     */
    async follow(turn, answer, opened) {
        let stream = opened;
        for (let tries = 0; tries < TRIES; tries += 1) {
            const begun = Date.now();
            try {
                for await (const event of stream) {
                    tries = 0;
                    this.take(turn, answer, event);
                }
            } catch (error) {
                if (this.leaving.signal.aborted || this.resting?.signal.aborted) return;
                if (!answer.id || !isPassing(error)) {
                    answer.failure = toError(error);
                    return;
                }
            }
            if (isOver(answer)) {
                await this.ended(turn, answer);
                return;
            }
            if (Date.now() - begun > LONG_STREAM) tries = 0;
            answer.resuming = tries > 0;
            this.touch();
            await new Promise((resolve) => setTimeout(resolve, FIRST_PAUSE * 2 ** tries));
            stream = this.events(answer);
        }
        answer.failure = new ApiError(0, "The connection broke, and the agent does not answer any more.");
    }

    /**
     * @param {Turn} turn
     * @param {Answer} answer
     * @param {ResponseEvent} event
     */
    take(turn, answer, event) {
        const before = answer.items.length;
        apply(answer, event);
        if (!BEGINNINGS.has(event.type)) answer.waits = false;
        if (!turn.run && answer.id) refresh(); // the conversation is the last used from now on
        turn.run ||= answer.id;
        if (answer.stopping && !answer.cancelled && !isOver(answer)) {
            answer.cancelled = true;
            this.cancel(turn, answer);
        }
        const added = answer.items.length > before ? answer.items.at(-1) : undefined;
        if (added) announceItem(added);
        this.touch();
    }

    /**
     * @param {Turn} turn
     * @param {Answer} answer
     */
    async ended(turn, answer) {
        if (needsDecision(answer)) {
            this.touch();
            await this.await(turn);
        } else {
            announceText(ENDINGS[answer.status] ?? "");
            this.measure(turn);
        }
    }

    /**
     * Asks how long the calls took: what was seen here is when their events came.
     * @param {Turn} turn
     */
    async measure(turn) {
        const run = await get(`runs/${turn.run}`).catch(() => null);
        if (run) enrich(turn.answers, callsOf(run));
        this.touch();
    }

    /**
     * Waits for the answer after the decisions, which are made here or elsewhere.
     * @param {Turn} turn
     */
    async await(turn) {
        const next = newAnswer(`${turn.run}_${turn.answers.length + 1}`);
        next.waits = true;
        turn.answers.push(next);
        this.touch();
        await this.follow(turn, next, this.events(next));
    }

    /** Closes the stream of a run that waits for a person, while the thread is not shown: a browser has few connections. */
    rest() {
        if (this.turns.at(-1)?.answers.at(-1)?.waits) this.resting?.abort();
    }

    /** Opens that stream again, when the thread is shown. */
    wake() {
        const turn = this.turns.at(-1);
        const answer = turn?.answers.at(-1);
        if (!turn || !answer?.waits || !this.resting?.signal.aborted) return;
        this.resting = null;
        this.follow(turn, answer, this.events(answer)).then(() => this.touch());
    }
}

// The first events after a decision come before the decision.
const BEGINNINGS = new Set(["response.created", "response.queued", "response.in_progress"]);

/** @type {Partial<Record<Answer["status"], string>>} */
const ENDINGS = {
    completed: "The answer is complete.",
    incomplete: "The answer was cut short.",
    failed: "The answer failed.",
    cancelled: "Stopped.",
};

/** @param {ShownItem} shown */
function announceItem(shown) {
    const { item } = shown;
    if (item.type === "mcp_call") announceText(`Calling ${item.name}.`);
    if (item.type === "mcp_approval_request")
        announceText(`${item.name} needs your ${isForm(shown) ? "input" : "approval"}.`);
}

/**
 * True if a stream is worth opening again: without an answer, or from a busy server.
 * @param {unknown} error
 */
function isPassing(error) {
    return error instanceof ApiError
        ? error.status === 0 || error.status === 429 || error.status >= 500
        : true;
}
