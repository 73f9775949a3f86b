// The form that the tool of a call puts to the owner of the run.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, post, toError } from "../api.js";
import { html } from "../html.js";
import { announceText } from "../live.js";
import { Notice } from "../parts/notice.js";
import { Fields } from "../tools/fields.js";
import { fieldsOf, read } from "../tools/schema.js";

/** @import { Problems, Schema, Written } from "../tools/schema.js" */

/** @import { WaitingInput } from "beckon-api" */
/** @typedef {"accept" | "decline"} Action */

/**
 * The forms of a run's calls of one tool. They are read again with each other `stamp`.
 *
 * @param {{ run: string, name: string, stamp: unknown }} props
 */
export function WaitingForms({ run, name, stamp }) {
    const [forms, setForms] = useState(/** @type {WaitingInput[]} */ ([]));
    useEffect(() => {
        get("inputs", { params: { limit: 100 } }).then(
            (found) => setForms(found.data.filter((one) => one.run === run && one.name === name)),
            () => setForms([]), // the run has the form, too, and the call links to it
        );
    }, [run, name, stamp]);
    return forms.map(
        (one) =>
            html`<${InputForm} key=${one.id} name=${one.name} id=${one.id} message=${one.message} schema=${one.schema}
                onAnswered=${() => setForms(forms.filter((other) => other !== one))} />`,
    );
}

/** @param {{ name: string, id: string, message: string, schema: Schema, onAnswered: () => void }} props */
export function InputForm({ name, id, message, schema, onAnswered }) {
    const fields = useMemo(() => fieldsOf(schema), [schema]);
    const [written, setWritten] = useState(/** @type {Written} */ ({}));
    const [problems, setProblems] = useState(/** @type {Problems} */ ({}));
    const [problem, setProblem] = useState("");
    const [busy, setBusy] = useState(false);
    /**
     * @param {Action} action
     * @param {unknown} [content]
     */
    const answer = async (action, content) => {
        setBusy(true);
        try {
            await post(`inputs/${encodeURIComponent(id)}`, { action, ...(content ? { content } : {}) });
            announceText(action === "accept" ? `${name} has your answer.` : `${name} goes on without it.`);
            setProblem("");
            onAnswered();
        } catch (error) {
            setProblem(toError(error).message);
        }
        setBusy(false);
    };
    /** @param {Event} event */
    const send = (event) => {
        event.preventDefault();
        const found = read(fields, written);
        setProblems(found.problems);
        const [wrong] = Object.keys(found.problems);
        if (wrong) document.getElementById(`field-${wrong}`)?.focus();
        else answer("accept", found.value);
    };
    return html`<form class="input-form" aria-label=${`Input for ${name}`} onSubmit=${send} noValidate>
        <p><strong>${name}</strong> needs your input.</p>
        <p>${message}</p>
        <${Fields} fields=${fields} root=${schema} written=${written} problems=${problems} onWritten=${setWritten} />
        <div class="deeds">
            <button class="button button-strong button-small" type="submit" disabled=${busy}>Send</button>
            <button class="button button-small" type="button" disabled=${busy} onClick=${() => answer("decline")}>Decline</button>
        </div>
        ${problem && html`<${Notice} text=${problem} />`}
    </form>`;
}
