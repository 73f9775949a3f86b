// Where a question is written: text, files, the agent, and the button that sends or stops.
import { useEffect, useRef, useState } from "preact/hooks";
import { agent, agents, chooseAgent } from "../agents.js";
import { html } from "../html.js";
import { announce } from "../live.js";
import { Icon } from "../parts/icons.js";
import { Notice } from "../parts/notice.js";
import { attach, contentOf } from "./attachments.js";
import { Attached } from "./turn.js";

const MOST_HEIGHT = 240; // pixels
const byTouch = matchMedia("(pointer: coarse)");

export function Composer({ thread }) {
    thread.watch();
    const [text, setText] = useState("");
    const [attached, setAttached] = useState([]);
    const [problem, setProblem] = useState("");
    const [over, setOver] = useState(false);
    const field = useRef(null);
    const chooser = useRef(null);
    useEffect(() => {
        if (!byTouch.matches) field.current?.focus({ preventScroll: true });
    }, [thread]);
    useEffect(() => fit(field.current), [text]);

    const ready = text.trim() || attached.length > 0;
    const send = (event) => {
        event?.preventDefault();
        if (!ready || thread.busy) return;
        thread.send(contentOf(text.trim(), attached));
        setText("");
        setAttached([]);
        setProblem("");
        field.current?.focus({ preventScroll: true });
    };
    const add = async (files) => {
        setProblem("");
        for (const file of files) {
            const one = await attach(file);
            if (one.problem) setProblem(one.problem);
            else setAttached((before) => [...before, one]);
        }
        if (files.length) announce(files.length === 1 ? `${files[0].name} is attached.` : `${files.length} files are attached.`);
        field.current?.focus({ preventScroll: true });
    };
    const keys = (event) => {
        // A finger has no Shift at hand: there, Enter begins a new line.
        if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !byTouch.matches) send(event);
    };
    const paste = (event) => {
        if (!event.clipboardData.files.length) return;
        event.preventDefault();
        add([...event.clipboardData.files]);
    };
    const drop = (event) => {
        event.preventDefault();
        setOver(false);
        add([...event.dataTransfer.files]);
    };
    return html`<form class=${`composer ${over ? "composer-over" : ""}`} onSubmit=${send} onDrop=${drop}
        onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)}>
        ${problem && html`<${Notice} tone="warn" text=${problem} />`}
        <div class="composer-box">
            ${attached.length > 0 && html`<div class="files">${attached.map((one, index) => html`
                <${Attached} key=${index} file=${shownFile(one)}
                    onRemove=${() => setAttached(attached.filter((other) => other !== one))} />`)}</div>`}
            <label class="unseen" for="question">Your question</label>
            <textarea id="question" ref=${field} rows="1" placeholder="Ask something" value=${text} enterkeyhint="enter"
                onInput=${(event) => setText(event.target.value)} onKeyDown=${keys} onPaste=${paste} />
            <div class="composer-row">
                <button class="icon-button" type="button" title="Attach an image or a file" aria-label="Attach an image or a file"
                    onClick=${() => chooser.current.click()}><${Icon} name="attach" /></button>
                <input ref=${chooser} class="unseen" type="file" multiple tabindex="-1" aria-label="Files to attach"
                    onChange=${(event) => { add([...event.target.files]); event.target.value = ""; }} />
                <${AgentChoice} />
                ${thread.busy
                ? html`<button class="send" type="button" aria-label="Stop" title="Stop" onClick=${() => thread.stop()}><${Icon} name="stop" /></button>`
                : html`<button class="send" type="submit" aria-label="Send" title="Send" disabled=${!ready}><${Icon} name="arrow" /></button>`}
            </div>
        </div>
    </form>`;
}

function AgentChoice() {
    const names = (agents.value ?? []).map((one) => one.id);
    if (names.length < 2) return html`<span class="agent-name">${names[0] ?? "No agent"}</span>`;
    return html`<label class="agent-choice"><span class="unseen">Agent</span>
        <select value=${agent.value} onChange=${(event) => chooseAgent(event.target.value)}>
            ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select></label>`;
}

function shownFile({ name, kind, part }) {
    return { name, kind, url: kind === "image" ? part.image_url : undefined };
}

function fit(area) {
    if (!area) return; // the view was left before its first frame
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, MOST_HEIGHT)}px`;
}
