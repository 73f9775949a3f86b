// A run as it is now: asked for again whenever its stream tells of a step, until it is over.
import { useEffect, useRef, useState } from "preact/hooks";
import { events, get } from "../api.js";
import { announce } from "../live.js";
import { isOver, stateOfRun } from "./states.js";

const AGAIN = 2000; // milliseconds until a stream that broke is joined again
const TICK = 200; // how often what is going on grows

/** Returns { run, saying, now, problem, reload }; `saying` is what the model says at this moment. */
export function useRun(id) {
    const [run, setRun] = useState(null);
    const [problem, setProblem] = useState(null);
    const [saying, setSaying] = useState("");
    const load = useRef(async () => null);
    load.current = async (signal) => {
        try {
            const found = await get(`runs/${encodeURIComponent(id)}`, { signal });
            setRun(found);
            setProblem(null);
            return found;
        } catch (error) {
            if (!signal?.aborted) setProblem(error);
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

async function follow(id, signal, load, setSaying) {
    const first = await load.current(signal);
    if (first === null || isOver(first)) return;
    while (!signal.aborted) {
        try {
            const last = await listen(id, signal, load, setSaying);
            if (last) {
                const run = await load.current(signal);
                if (run) announce(`The run is over: ${stateOfRun(run).name}.`);
                return;
            }
        } catch (error) {
            if (signal.aborted || error.status === 404) return;
        }
        await new Promise((resolve) => { setTimeout(resolve, AGAIN); });
        await load.current(signal);
    }
}

/** Follows the stream; returns whether it came to the end of the run. */
async function listen(id, signal, load, setSaying) {
    let said = "";
    for await (const told of events("GET", `runs/${encodeURIComponent(id)}/events`, undefined, { signal })) {
        if (told.type === "text") {
            said += told.text;
            setSaying(said);
            continue;
        }
        if (told.type === "reasoning") continue;
        if (told.type === "turn" || told.type === "dropped") {
            said = "";
            setSaying("");
        }
        if (told.type === "ended") return true;
        await load.current(signal);
    }
    return false;
}

function useNow(ticks) {
    const [now, setNow] = useState(Date.now() / 1000);
    useEffect(() => {
        if (!ticks) return undefined;
        const timer = setInterval(() => setNow(Date.now() / 1000), TICK);
        return () => clearInterval(timer);
    }, [ticks]);
    return now;
}
