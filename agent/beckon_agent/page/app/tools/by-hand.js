// A call by hand: the arguments as a form or as JSON, and what the tool answers.
import { useMemo, useState } from "preact/hooks";
import { agent } from "../agents.js";
import { postAndHear } from "../api.js";
import { html } from "../html.js";
import { announce } from "../live.js";
import { Data } from "../parts/data.js";
import { Busy, Notice } from "../parts/notice.js";
import { Progress } from "../parts/progress.js";
import { duration } from "../parts/times.js";
import { Fields } from "./fields.js";
import { fieldsOf, read, readJson } from "./schema.js";

export function ByHand({ tool }) {
    const fields = useMemo(() => fieldsOf(tool.parameters), [tool.parameters]);
    const [mode, setMode] = useState("Form");
    const [written, setWritten] = useState({});
    const [text, setText] = useState("{}");
    const [problems, setProblems] = useState({});
    const [call, setCall] = useState({ busy: false, answer: null, error: null });
    const change = (next) => {
        if (next === mode) return;
        if (next === "JSON") setText(JSON.stringify(read(fields, written).value, null, 2));
        setProblems({});
        setMode(next);
    };
    const send = async (event) => {
        event.preventDefault();
        const found = mode === "Form" ? read(fields, written) : whole(text);
        setProblems(found.problems);
        const wrong = Object.keys(found.problems);
        if (wrong.length) {
            announce(`${wrong.length === 1 ? "One value is" : `${wrong.length} values are`} not right.`);
            document.getElementById(`field-${wrong[0]}`)?.focus();
            return;
        }
        setCall({ busy: true, answer: null, error: null });
        try {
            const hear = (report) => setCall({ busy: true, answer: null, error: null, report });
            const answer = await postAndHear(`tools/${encodeURIComponent(tool.name)}`, found.value, hear, { params: { agent: agent.value } });
            setCall({ busy: false, answer, error: null });
            announce(`${tool.name} has answered.`);
        } catch (error) {
            setCall({ busy: false, answer: null, error });
        }
    };
    return html`<form class="by-hand" onSubmit=${send} noValidate>
        <div class="by-hand-top">
            <p class="hint">This calls the service for real, on the way that models' calls go. ${tool.read_only ? "The tool only reads." : ""}</p>
            ${fields.length > 0 && html`<div class="switch" role="group" aria-label="How the arguments are written">
                ${["Form", "JSON"].map((name) => html`<button key=${name} type="button" aria-pressed=${mode === name} onClick=${() => change(name)}>${name}</button>`)}
            </div>`}
        </div>
        ${mode === "JSON"
            ? html`<${Text} text=${text} problem=${problems.arguments} onWrite=${setText} />`
            : html`<${Fields} fields=${fields} root=${tool.parameters} written=${written} problems=${problems} onWritten=${setWritten} />`}
        ${fields.length === 0 && html`<p>It takes no arguments.</p>`}
        <div class="deeds"><button class="button button-strong" type="submit" disabled=${call.busy}>Call ${tool.name}</button></div>
        <${Outcome} tool=${tool} call=${call} />
    </form>`;
}

function whole(text) {
    const { value, problem } = readJson(text);
    if (problem) return { problems: { arguments: problem } };
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? { value, problems: {} } : { problems: { arguments: "must be a JSON object" } };
}

function Text({ text, problem, onWrite }) {
    return html`<div class="field">
        <label for="field-arguments"><span>Arguments</span> <small>a JSON object</small></label>
        <textarea id="field-arguments" class="mono" rows="8" spellcheck=${false} value=${text} aria-invalid=${problem ? "true" : undefined}
            aria-describedby=${problem ? "field-arguments-problem" : undefined} onInput=${(event) => onWrite(event.target.value)}></textarea>
        ${problem && html`<p class="problem" id="field-arguments-problem">The text ${problem}.</p>`}
    </div>`;
}

function Outcome({ tool, call }) {
    if (call.report) return html`<${Progress} report=${call.report} label=${`Progress of ${tool.name}`} />`;
    if (call.busy) return html`<${Busy} text="The call is under way …" />`;
    if (call.error) return html`<${Refused} error=${call.error} />`;
    if (!call.answer) return null;
    return html`<section class="answer-by-hand" aria-label="Reply">
        <h3>Reply <small>after ${duration(call.answer.seconds)}</small></h3>
        <${Data} value=${call.answer.result} label=${`Reply of ${tool.name}`} />
    </section>`;
}

function Refused({ error }) {
    const problems = error.body?.problems ?? [];
    return html`<${Notice} title=${error.body?.title ?? "The call failed"} text=${error.message} />
        ${problems.length > 0 && html`<ul class="problems">${problems.map((one) => html`<li key=${one}>${one}</li>`)}</ul>`}`;
}
