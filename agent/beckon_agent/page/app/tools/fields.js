// The fields of a form that was made from a schema.
import { html, onValue } from "../html.js";
import { typeOf } from "./schema.js";

/** @import { Field, Problems, Schema, Written } from "./schema.js" */

/**
 * `written` has the values of the fields, by name; `onWritten` takes all of them.
 *
 * @typedef {object} FieldsProps
 * @property {Field[]} fields
 * @property {Schema} root
 * @property {Written} written
 * @property {Problems} problems
 * @property {(written: Written) => void} onWritten
 * @property {string} [path]
 */

/** @typedef {{ field: Field, text: string, onWrite: (text: string) => void }} FieldProps */

const LONG = 120; // characters; a text that may be longer gets more than a line

/** @param {FieldsProps} props */
export function Fields({ fields, root, written, problems, onWritten, path = "" }) {
    return fields.map((field) => {
        const here = path ? `${path}.${field.name}` : field.name;
        /** @param {string | Written} value */
        const change = (value) => onWritten({ ...written, [field.name]: value });
        if (field.kind === "object") {
            return html`<fieldset key=${here} class="inner">
                <legend>${field.name}${field.required && html` <${Required} />`}</legend>
                ${field.schema.description && html`<p class="hint">${field.schema.description}</p>`}
                <${Fields} fields=${field.fields} root=${root} written=${written[field.name] ?? {}} problems=${problems}
                    onWritten=${change} path=${here} />
            </fieldset>`;
        }
        return html`<${One} key=${here} field=${field} root=${root} path=${here} text=${written[field.name] ?? ""} problem=${problems[here]} onWrite=${change} />`;
    });
}

const Required = () => html`<span class="required" aria-hidden="true">required</span>`;

/** @param {FieldProps & { root: Schema, path: string, problem?: string }} props */
function One({ field, root, path, text, problem, onWrite }) {
    const id = `field-${path}`;
    const about = [problem && `${id}-problem`, `${id}-hint`].filter(Boolean).join(" ");
    const common = {
        id,
        "aria-describedby": about,
        "aria-invalid": problem ? "true" : undefined,
        "aria-required": field.required ? "true" : undefined,
    };
    return html`<div class="field">
        <label for=${id}><span>${field.name}</span> <small>${typeOf(field.schema, root)}</small>${field.required && html` <${Required} />`}</label>
        <${Control} field=${field} text=${text} common=${common} onWrite=${onWrite} />
        <p class="hint" id=${`${id}-hint`}>${field.schema.description ?? ""}</p>
        ${problem && html`<p class="problem" id=${`${id}-problem`}>${field.name} ${problem}.</p>`}
    </div>`;
}

/** @param {FieldProps & { common: Record<string, string | undefined> }} props */
function Control({ field, text, common, onWrite }) {
    const { kind, schema, required } = field;
    const fallback = schema.default === undefined ? "" : String(JSON.stringify(schema.default));
    const input = onValue(onWrite);
    if (kind === "choice" || kind === "boolean") {
        const options =
            kind === "boolean"
                ? [
                      ["true", "yes"],
                      ["false", "no"],
                  ]
                : (schema.enum ?? []).map((one, index) => [String(index), String(one)]);
        return html`<select ...${common} value=${text} onChange=${input}>
            <option value="">${unset(required, fallback)}</option>
            ${options.map(([value, name]) => html`<option key=${value} value=${value}>${name}</option>`)}
        </select>`;
    }
    const placeholder = fallback && `${fallback} by default`;
    if (kind === "json") {
        return html`<textarea ...${common} class="mono" rows="3" spellcheck=${false} placeholder=${placeholder || example(schema)} value=${text} onInput=${input}></textarea>`;
    }
    if (kind === "text" && !(schema.maxLength !== undefined && schema.maxLength <= LONG) && !schema.format) {
        return html`<textarea ...${common} rows="1" class="growing" placeholder=${placeholder} value=${text} onInput=${input}></textarea>`;
    }
    const number = kind === "integer" || kind === "number";
    return html`<input ...${common} type="text" inputmode=${number ? "decimal" : undefined} placeholder=${placeholder} value=${text} onInput=${input} autocomplete="off" />`;
}

/**
 * @param {boolean} required
 * @param {string} fallback
 */
function unset(required, fallback) {
    if (fallback) return `${fallback} by default`;
    return required ? "choose one" : "no value";
}

/** @param {Schema} schema */
const example = (schema) => (schema.type === "array" ? "[ ]" : "{ }");
