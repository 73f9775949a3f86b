// A run as it is now: loaded again at each event of its stream, until it is over.
import { useEffect, useRef, useState } from "preact/hooks";
import { events, get, statusOf, toError } from "../api.js";
import { announceText } from "../live.js";
import { isOver, stateOfRun } from "./states.js";

/** @import { RefObject } from "preact" */
/** @import { RunDocument } from "beckon-api" */

/** @typedef {RefObject<(signal?: AbortSignal) => Promise<RunDocument | null>>} Load */

const RETRY_PAUSE = 2000; // milliseconds until a stream that broke is opened again
const TICK = 200; // how often what is going on grows

/**
 * Returns { run, saying, now, problem, reload }; `saying` is what the model says at this moment.
 * @param {string} id
 */
export function useRun(id) {
    const [run, setRun] = useState(/** @type {RunDocument | null} */ (null));
    const [problem, setProblem] = useState(/** @type {Error | null} */ (null));
    const [saying, setSaying] = useState("");
    /** @type {Load} */
    const load = useRef(async () => null);
    load.current = async (signal) => {
        try {
            const found = await get(`runs/${encodeURIComponent(id)}`, { signal });
            setRun(found);
            setProblem(null);
            return found;
        } catch (error) {
            if (!signal?.aborted) setProblem(toError(error));
            return null;
        }
    };
    useEffect(() => {
        const looking = new AbortController();
        setRun(null);
        follow(id, looking.signal, load, setSaying);
        return () => looking.abort();
    }, [id]);
    const now = useNow(run !== null && !isOver(run));
    return { run, saying, now, problem, reload: () => load.current() };
}

/**
 * @param {string} id
 * @param {AbortSignal} signal
 * @param {Load} load
 * @param {(text: string) => void} setSaying
 */
async function follow(id, signal, load, setSaying) {
    const first = await load.current(signal);
    if (first === null || isOver(first)) return;
    while (!signal.aborted) {
        try {
            const last = await listen(id, signal, load, setSaying);
            if (last) {
                const run = await load.current(signal);
                if (run) announceText(`The run is over: ${stateOfRun(run).name}.`);
                return;
            }
        } catch (error) {
            if (signal.aborted || statusOf(error) === 404) return;
        }
        await new Promise((resolve) => {
            setTimeout(resolve, RETRY_PAUSE);
        });
        await load.current(signal);
    }
}

/**
 * Follows the stream; returns whether it came to the end of the run.
 * @param {string} id
 * @param {AbortSignal} signal
 * @param {Load} load
 * @param {(text: string) => void} setSaying
 */
async function listen(id, signal, load, setSaying) {
    let text = "";
    for await (const event of events("GET", `runs/${encodeURIComponent(id)}/events`, undefined, { signal })) {
        if (event.type === "text") {
            text += event.text;
            setSaying(text);
            continue;
        }
        if (event.type === "reasoning") continue;
        if (event.type === "turn" || event.type === "dropped") {
            text = "";
            setSaying("");
        }
        if (event.type === "ended") return true;
        await load.current(signal);
    }
    return false;
}

/** @param {boolean} ticks */
function useNow(ticks) {
    const [now, setNow] = useState(Date.now() / 1000);
    useEffect(() => {
        if (!ticks) return undefined;
        const timer = setInterval(() => setNow(Date.now() / 1000), TICK);
        return () => clearInterval(timer);
    }, [ticks]);
    return now;
}
