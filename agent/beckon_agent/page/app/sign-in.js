// The sign-in of an agent that needs a key: this tab stores it, and sends it to this agent alone.
import { useEffect, useRef, useState } from "preact/hooks";
import { html, onValue } from "./html.js";
import { Mark } from "./parts/icons.js";
import { Notice } from "./parts/notice.js";
import { key, signIn, wanted } from "./session.js";

export function SignIn() {
    const [value, setValue] = useState("");
    const field = useRef(/** @type {HTMLInputElement | null} */ (null));
    useEffect(() => {
        field.current?.focus();
    }, []);
    /** @param {Event} event */
    const submit = (event) => {
        event.preventDefault();
        if (value.trim()) signIn(value.trim());
    };
    return html`<form class="sign-in" onSubmit=${submit} aria-labelledby="sign-in-title">
        <${Mark} size="40" />
        <h1 id="sign-in-title">Sign in</h1>
        <p>This agent needs a key. Paste an API key, or a token of your identity provider.</p>
        ${key.value && html`<${Notice} text=${wanted.value} />`}
        <label class="field">
            <span>Key or token</span>
            <input ref=${field} type="password" autocomplete="off" spellcheck="false" value=${value}
                onInput=${onValue(setValue)} />
        </label>
        <button class="button button-strong" type="submit" disabled=${!value.trim()}>Sign in</button>
        <p class="hint">This tab stores it until you close it or sign out. The operator of the agent makes keys
            with <code>beckon keys new</code>.</p>
    </form>`;
}
