// A tool as a model sees it: its name, description and parameters, and the declaration itself.
import { useState } from "preact/hooks";
import { html } from "../html.js";
import { CopyButton } from "../parts/copy.js";
import { Json } from "../parts/json.js";
import { typeOf } from "./schema.js";

/** @import { ToolDocument } from "beckon-api" */
/** @import { Schema } from "./schema.js" */

/** @type {[string, boolean][]} */
const CHOICES = [
    ["Words", false],
    ["JSON", true],
];

/** @param {{ tool: ToolDocument }} props */
export function WhatTheModelSees({ tool }) {
    const [raw, setRaw] = useState(false);
    const declared = tool.declaration.function ?? tool.declaration;
    return html`<section class="card part" aria-labelledby="sees-title">
        <div class="part-top">
            <h2 id="sees-title">What the model sees</h2>
            <div class="switch" role="group" aria-label="How the declaration is shown">
                ${CHOICES.map(
                    ([name, value]) => html`
                    <button key=${name} type="button" aria-pressed=${raw === value} onClick=${() => setRaw(value)}>${name}</button>`,
                )}
            </div>
        </div>
        ${
            raw
                ? html`<div class="with-copy"><${Json} value=${tool.declaration} label="The declaration" /><${CopyButton} text=${JSON.stringify(tool.declaration, null, 2)} label="Copy the declaration" /></div>`
                : html`<${Words} declared=${declared} />`
        }
    </section>`;
}

/** @param {{ declared: { description?: string, parameters?: Schema } }} props */
function Words({ declared }) {
    const schema = declared.parameters ?? {};
    const required = new Set(schema.required ?? []);
    const parameters = Object.entries(schema.properties ?? {});
    return html`
        <p class="sees-description">${declared.description}</p>
        ${
            parameters.length === 0
                ? html`<p class="hint">No parameters.</p>`
                : html`<dl class="facts parameters">
            ${parameters.map(
                ([name, one]) => html`<div key=${name}>
                <dt><code>${name}</code>${required.has(name) && html` <span class="required">required</span>`}</dt>
                <dd>${typeOf(one, schema)}${one?.description && html`<br /><span class="hint">${one.description}</span>`}</dd>
            </div>`,
            )}
        </dl>`
        }`;
}
