// One conversation: its turns, and how each of them comes about. Nothing here draws.
import { signal } from "@preact/signals";
import { agent } from "../agents.js";
import { ApiError, events, get, post } from "../api.js";
import { announce } from "../live.js";
import { go, href, route } from "../route.js";
import { caller } from "../session.js";
import { answerOf, apply, approvalsOf, isOver, newAnswer } from "./answer.js";
import { shownContent } from "./attachments.js";
import { branch, close, entitle, open, refresh, runsOf, said } from "./conversations.js";

const TRIES = 8;
const FIRST_PAUSE = 250; // milliseconds; doubles with every try
const PROGRESS = "beckon:mcp_call.progress"; // what tools report while they work: told to who asks for it
const HELD = 5000; // milliseconds after which a stream that ends was a good one: proxies cut what is long

const threads = new Map();
let fresh = null;

/** The thread of a conversation, or the one that has no conversation yet; it lives on while another is shown. */
export function threadOf(id) {
    if (!id) return (fresh ??= new Thread(""));
    if (!threads.has(id)) threads.set(id, new Thread(id));
    return threads.get(id);
}

// Whoever signs in next must not see what is here.
caller.subscribe(() => {
    for (const thread of [...threads.values(), fresh]) thread?.leave();
    threads.clear();
    fresh = null;
});

class Thread {
    constructor(id) {
        this.id = id;
        this.turns = [];
        this.loading = Boolean(id);
        this.failure = null;
        this.more = false;
        this.changed = signal(0);
        this.leaving = new AbortController();
        if (id) this.load();
    }

    /** Whether an answer is on its way; one that waits for a person is not. */
    get busy() {
        const answer = this.turns.at(-1)?.answers.at(-1);
        return Boolean(answer) && !answer.waits && !isOver(answer) && !answer.failure;
    }

    /** What a component reads that shows anything of a thread: it is drawn again whenever the thread changes. */
    watch() {
        return this.changed.value;
    }

    /** Redraws at the next frame, however often it is said before. */
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
            const { runs, more } = await runsOf(this.id);
            this.more = more;
            const turns = runs.length ? await Promise.all(runs.map(readTurn)) : await plainTurns(this.id);
            this.turns = turns.filter((turn, index) => turn && !wasAskedAgain(turn, turns[index + 1]));
            for (const turn of this.turns) this.goOn(turn);
        } catch (error) {
            this.failure = error;
        }
        this.loading = false;
        this.touch();
    }

    /** Asks something; `content` is as the API takes it. */
    async send(content) {
        const answer = newAnswer();
        const turn = { key: crypto.randomUUID(), run: "", question: content, answers: [answer], at: Date.now() / 1000 };
        this.turns.push(turn);
        this.touch();
        try {
            if (!this.id) await this.begin(content);
            const asked = {
                model: agent.value, input: [{ type: "message", role: "user", content }],
                conversation: this.id, stream: true, background: true, include: [PROGRESS],
            };
            await this.follow(turn, answer, events("POST", "v1/responses", asked, { signal: this.leaving.signal }));
        } catch (error) {
            answer.failure = error;
        }
        this.touch();
        refresh();
    }

    /** Asks the question of a turn again, or another one in its place; what came after it falls away. */
    async again(turn, content = turn.question) {
        const place = this.turns.indexOf(turn);
        const last = turn.answers.at(-1);
        // A run that did not come to its end has left nothing in the conversation.
        const leftNothing = place === this.turns.length - 1 && (!turn.run || ["failed", "cancelled"].includes(last.status));
        try {
            if (!leftNothing) {
                const before = this.turns.slice(0, place);
                const id = await branch(before.map((one) => one.run), turn.run);
                await close(this.id).catch(() => {}); // its runs stay, to be seen under Runs
                if (shownContent(content).text) entitle(id, shownContent((before[0] ?? { question: content }).question).text);
                this.move(id);
            }
        } catch (error) {
            last.failure = error;
            this.touch();
            return;
        }
        this.turns.length = place;
        await this.send(content);
    }

    /** Stops what is under way; what the tools have done stays done. */
    async stop() {
        const turn = this.turns.at(-1);
        const answer = turn?.answers.at(-1);
        if (!answer || isOver(answer)) return;
        answer.stopping = true;
        this.touch();
        if (turn.run) await this.cancel(turn, answer);
    }

    async cancel(turn, answer) {
        try {
            await post(`v1/responses/${turn.run}/cancel`);
        } catch (error) {
            if (!isOver(answer)) answer.failure = error;
        }
        this.touch();
    }

    /** Says yes or no to a call; the run goes on once all questions of its response are answered. */
    async decide(turn, answer, request, approve) {
        answer.decided = { ...answer.decided, [request.id]: approve };
        this.touch();
        const asked = approvalsOf(answer);
        if (!asked.every((one) => one.id in answer.decided)) return;
        const input = asked.map((one) => ({
            type: "mcp_approval_response", approval_request_id: one.id, approve: answer.decided[one.id],
        }));
        try {
            await post("v1/responses", { input, background: true });
            turn.answers.at(-1).waits = false;
        } catch (error) {
            // Somebody may have decided elsewhere: what follows is told all the same.
            if (error.status !== 409) answer.decided = {};
            answer.refusal = error.message;
        }
        this.touch();
    }

    async begin(content) {
        const id = await open();
        entitle(id, shownContent(content).text || "With a file");
        if (fresh === this) fresh = null;
        this.move(id);
    }

    move(id) {
        const before = this.id;
        threads.delete(before);
        threads.set(id, this);
        this.id = id;
        const { view, parts } = route.value;
        // The address follows the thread, where it is the one that is shown.
        if (view === "chat" && (parts[0] ?? "") === before) go(href("chat", id), { replace: Boolean(before) });
    }

    /** Follows a turn that was read while it was under way. */
    async goOn(turn) {
        const answer = turn.answers.at(-1);
        if (!turn.run || (isOver(answer) && !isAsking(answer))) return;
        if (isOver(answer)) await this.await(turn, answer);
        else await this.follow(turn, answer, this.events(answer));
        this.touch();
    }

    events(answer) {
        const params = { stream: true, starting_after: answer.number, "include[]": PROGRESS };
        this.resting = new AbortController();
        const signal = AbortSignal.any([this.leaving.signal, this.resting.signal]);
        return events("GET", `v1/responses/${answer.id}`, undefined, { params, signal });
    }

    /** Reads a stream to the end of its response, joining it again as often as it breaks. */
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
                    answer.failure = error;
                    return;
                }
            }
            if (isOver(answer)) {
                await this.ended(turn, answer);
                return;
            }
            if (Date.now() - begun > HELD) tries = 0;
            answer.resuming = tries > 0;
            this.touch();
            await new Promise((resolve) => setTimeout(resolve, FIRST_PAUSE * 2 ** tries));
            stream = this.events(answer);
        }
        answer.failure = new ApiError(0, "The connection broke, and the agent does not answer any more.");
    }

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
        if (answer.items.length > before) tell(answer.items.at(-1));
        this.touch();
    }

    async ended(turn, answer) {
        if (isAsking(answer)) {
            this.touch();
            await this.await(turn, answer);
        } else {
            announce(ENDINGS[answer.status] ?? "");
            this.measure(turn);
        }
    }

    /** Asks how long the calls took: what was seen here is when their events came. */
    async measure(turn) {
        const run = await get(`runs/${turn.run}`).catch(() => null);
        if (run) enrich(turn.answers, callsOf(run));
        this.touch();
    }

    /** Waits for what follows the decisions, whoever makes them, here or elsewhere. */
    async await(turn, answer) {
        const next = newAnswer(`${turn.run}_${turn.answers.length + 1}`);
        next.waits = true;
        turn.answers.push(next);
        this.touch();
        await this.follow(turn, next, this.events(next));
    }

    /** Lets go of the stream of a run that waits for a person, as nobody looks: a browser has few connections. */
    rest() {
        if (this.turns.at(-1)?.answers.at(-1)?.waits) this.resting?.abort();
    }

    /** Somebody looks again. */
    wake() {
        const turn = this.turns.at(-1);
        const answer = turn?.answers.at(-1);
        if (!answer?.waits || !this.resting?.signal.aborted) return;
        this.resting = null;
        this.follow(turn, answer, this.events(answer)).then(() => this.touch());
    }
}

// What follows a decision is announced before anybody has decided.
const BEGINNINGS = new Set(["response.created", "response.queued", "response.in_progress"]);

const ENDINGS = {
    completed: "The answer is complete.",
    incomplete: "The answer was cut short.",
    failed: "The answer failed.",
    cancelled: "Stopped.",
};

function tell(shown) {
    const name = shown.item.name;
    if (shown.type === "mcp_call") announce(`Calling ${name}.`);
    if (shown.type === "mcp_approval_request") announce(`${name} wants your approval.`);
}

/** Whether a stream is worth joining again: nothing answered, or a server that has no time. */
function isPassing(error) {
    return error instanceof ApiError ? error.status === 0 || error.status === 429 || error.status >= 500 : true;
}

function isAsking(answer) {
    return answer.status === "completed" && approvalsOf(answer).length > 0;
}

async function readTurn(run) {
    try {
        const [first, input, found] = await Promise.all([
            get(`v1/responses/${run}`),
            get(`v1/responses/${run}/input_items`, { params: { order: "desc", limit: 1 } }),
            get(`runs/${run}`),
        ]);
        const calls = callsOf(found);
        const answers = [answerOf(first)];
        while (isAsking(answers.at(-1))) {
            const next = await get(`v1/responses/${run}_${answers.length + 1}`).catch(() => null);
            if (next === null) break;
            answers.push(answerOf(next));
        }
        enrich(answers, calls);
        const last = answers.at(-1);
        if (!isOver(last)) {
            const waits = calls.some((call) => call.approval && call.approval.decision === null);
            answers[answers.length - 1] = { ...newAnswer(last.id), status: last.status, waits };
        }
        return { key: run, run, question: input.data[0]?.content ?? "", answers, at: first.created_at };
    } catch (error) {
        if (error.status === 404) return null; // it was deleted
        throw error;
    }
}

function callsOf(run) {
    return run.steps.flatMap((step) => step.calls);
}

/** Adds what the run knows and the response does not: how long each call took, and who was allowed to make it. */
function enrich(answers, calls) {
    const left = [...calls];
    for (const answer of answers) {
        for (const [index, shown] of answer.items.entries()) {
            const place = shown.type === "mcp_call" ? left.findIndex((call) => call.name === shown.item.name) : -1;
            if (place >= 0) answer.items[index] = { ...shown, seconds: left.splice(place, 1)[0].seconds ?? undefined };
            const decision = calls.find((call) => call.approval?.id === shown.id)?.approval.decision;
            if (decision) answer.decided = { ...answer.decided, [shown.id]: decision === "approved" };
        }
    }
}

/** The turns of a conversation that holds what somebody put into it, and no run of its own. */
async function plainTurns(id) {
    const turns = [];
    for (const item of await said(`v1/conversations/${id}/items`)) {
        if (item.type === "message" && item.role === "user") {
            turns.push({ key: item.id, run: "", question: item.content, answers: [], at: null });
        } else if (turns.length) {
            const answers = turns.at(-1).answers;
            const output = [...(answers[0]?.items.map((shown) => shown.item) ?? []), item];
            answers[0] = answerOf({ id: "", status: "completed", output, usage: null });
        }
    }
    return turns;
}

function wasAskedAgain(turn, next) {
    const status = turn.answers.at(-1)?.status;
    const same = next && JSON.stringify(shownContent(next.question)) === JSON.stringify(shownContent(turn.question));
    return Boolean(same) && (status === "failed" || status === "cancelled");
}
