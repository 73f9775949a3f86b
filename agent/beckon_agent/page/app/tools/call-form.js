// A call from the page: the arguments as a form or as JSON, and the reply.
import { useMemo, useState } from "preact/hooks";
import { agent } from "../agents.js";
import { ApiError, postWithProgress, toError } from "../api.js";
import { html, onValue } from "../html.js";
import { announceText } from "../live.js";
import { Data } from "../parts/data.js";
import { Busy, Notice } from "../parts/notice.js";
import { Progress } from "../parts/progress.js";
import { duration } from "../parts/times.js";
import { Fields } from "./fields.js";
import { fieldsOf, read, readJson } from "./schema.js";

/** @import { ProgressDocument, ToolDocument, ToolResult } from "beckon-api" */
/** @import { Problems, Written } from "./schema.js" */

/** @typedef {{ busy: boolean, answer: ToolResult | null, error: unknown, report?: ProgressDocument }} Call */

/** @param {{ tool: ToolDocument }} props */
export function CallForm({ tool }) {
    const fields = useMemo(() => fieldsOf(tool.parameters), [tool.parameters]);
    const [mode, setMode] = useState("Form");
    const [written, setWritten] = useState(/** @type {Written} */ ({}));
    const [text, setText] = useState("{}");
    const [problems, setProblems] = useState(/** @type {Problems} */ ({}));
    const [call, setCall] = useState(/** @type {Call} */ ({ busy: false, answer: null, error: null }));
    /** @param {string} next */
    const change = (next) => {
        if (next === mode) return;
        if (next === "JSON") setText(JSON.stringify(read(fields, written).value, null, 2));
        setProblems({});
        setMode(next);
    };
    /** @param {Event} event */
    const send = async (event) => {
        event.preventDefault();
        const found = mode === "Form" ? read(fields, written) : whole(text);
        setProblems(found.problems);
        const wrong = Object.keys(found.problems);
        if (wrong.length) {
            announceText(`${wrong.length === 1 ? "One value is" : `${wrong.length} values are`} not right.`);
            document.getElementById(`field-${wrong[0]}`)?.focus();
            return;
        }
        setCall({ busy: true, answer: null, error: null });
        try {
            /** @param {ProgressDocument} report */
            const showReport = (report) => setCall({ busy: true, answer: null, error: null, report });
            const answer = await postWithProgress(
                `tools/${encodeURIComponent(tool.name)}`,
                found.value,
                showReport,
                {
                    params: { agent: agent.value },
                },
            );
            setCall({ busy: false, answer, error: null });
            announceText(`${tool.name} has answered.`);
        } catch (error) {
            setCall({ busy: false, answer: null, error });
        }
    };
    return html`<form class="call-form" onSubmit=${send} noValidate>
        <div class="call-form-top">
            <p class="hint">This calls the real service, on the same route as a model's calls. ${tool.read_only ? "The tool only reads." : ""}</p>
            ${
                fields.length > 0 &&
                html`<div class="switch" role="group" aria-label="Form of the arguments">
                ${["Form", "JSON"].map((name) => html`<button key=${name} type="button" aria-pressed=${mode === name} onClick=${() => change(name)}>${name}</button>`)}
            </div>`
            }
        </div>
        ${
            mode === "JSON"
                ? html`<${Text} text=${text} problem=${problems.arguments} onWrite=${setText} />`
                : html`<${Fields} fields=${fields} root=${tool.parameters} written=${written} problems=${problems} onWritten=${setWritten} />`
        }
        ${fields.length === 0 && html`<p>It takes no arguments.</p>`}
        <div class="deeds"><button class="button button-strong" type="submit" disabled=${call.busy}>Call ${tool.name}</button></div>
        <${Outcome} tool=${tool} call=${call} />
    </form>`;
}

/**
 * @param {string} text
 * @returns {{ value?: unknown, problems: Problems }}
 */
function whole(text) {
    const { value, problem } = readJson(text);
    if (problem) return { problems: { arguments: problem } };
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? { value, problems: {} } : { problems: { arguments: "must be a JSON object" } };
}

/** @param {{ text: string, problem?: string, onWrite: (text: string) => void }} props */
function Text({ text, problem, onWrite }) {
    return html`<div class="field">
        <label for="field-arguments"><span>Arguments</span> <small>a JSON object</small></label>
        <textarea id="field-arguments" class="mono" rows="8" spellcheck=${false} value=${text} aria-invalid=${problem ? "true" : undefined}
            aria-describedby=${problem ? "field-arguments-problem" : undefined} onInput=${onValue(onWrite)}></textarea>
        ${problem && html`<p class="problem" id="field-arguments-problem">The text ${problem}.</p>`}
    </div>`;
}

/** @param {{ tool: ToolDocument, call: Call }} props */
function Outcome({ tool, call }) {
    if (call.report) return html`<${Progress} report=${call.report} label=${`Progress of ${tool.name}`} />`;
    if (call.busy) return html`<${Busy} text="Calling …" />`;
    if (call.error) return html`<${Refused} error=${call.error} />`;
    if (!call.answer) return null;
    return html`<section class="call-reply" aria-label="Reply">
        <h3>Reply <small>after ${duration(call.answer.seconds)}</small></h3>
        <${Data} value=${call.answer.result} label=${`Reply of ${tool.name}`} />
    </section>`;
}

/** @param {{ error: unknown }} props */
function Refused({ error }) {
    const body = error instanceof ApiError ? error.body : null;
    const problems = body?.problems ?? [];
    return html`<${Notice} title=${body?.title ?? "The call failed"} text=${toError(error).message} />
        ${problems.length > 0 && html`<ul class="problems">${problems.map((one) => html`<li key=${one}>${one}</li>`)}</ul>`}`;
}
