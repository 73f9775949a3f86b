// The form of a question: text, files, the agent, and the button that sends or stops.
import { useEffect, useRef, useState } from "preact/hooks";
import { agent, agents, chooseAgent } from "../agents.js";
import { html, onValue } from "../html.js";
import { announceText } from "../live.js";
import { Icon } from "../parts/icons.js";
import { Notice } from "../parts/notice.js";
import { attach, contentOf } from "./attachments.js";
import { Attached } from "./turn.js";

/** @import { TargetedClipboardEvent, TargetedDragEvent, TargetedEvent, TargetedKeyboardEvent } from "preact" */
/** @import { AttachedFile, ShownFile } from "./attachments.js" */
/** @import { Thread } from "./thread.js" */

const MOST_HEIGHT = 240; // pixels
const byTouch = matchMedia("(pointer: coarse)");

/** @param {{ thread: Thread }} props */
export function Composer({ thread }) {
    thread.watch();
    const [text, setText] = useState("");
    const [attached, setAttached] = useState(/** @type {AttachedFile[]} */ ([]));
    const [problem, setProblem] = useState("");
    const [over, setOver] = useState(false);
    const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
    useEffect(() => {
        if (!byTouch.matches) field.current?.focus({ preventScroll: true });
    }, [thread]);
    useEffect(() => fit(field.current), [text]);

    const ready = text.trim() || attached.length > 0;
    /** @param {Event} [event] */
    const send = (event) => {
        event?.preventDefault();
        if (!ready || thread.busy) return;
        thread.send(contentOf(text.trim(), attached));
        setText("");
        setAttached([]);
        setProblem("");
        field.current?.focus({ preventScroll: true });
    };
    /** @param {File[]} files */
    const add = async (files) => {
        setProblem("");
        for (const file of files) {
            const one = await attach(file);
            if ("problem" in one) setProblem(one.problem);
            else setAttached((before) => [...before, one]);
        }
        if (files.length)
            announceText(
                files.length === 1 ? `${files[0].name} is attached.` : `${files.length} files are attached.`,
            );
        field.current?.focus({ preventScroll: true });
    };
    /** @param {TargetedKeyboardEvent<HTMLTextAreaElement>} event */
    const keys = (event) => {
        // A finger has no Shift at hand: there, Enter begins a new line.
        if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !byTouch.matches) send(event);
    };
    /** @param {TargetedClipboardEvent<HTMLTextAreaElement>} event */
    const paste = (event) => {
        if (!event.clipboardData?.files.length) return;
        event.preventDefault();
        add([...event.clipboardData.files]);
    };
    /** @param {TargetedDragEvent<HTMLFormElement>} event */
    const drop = (event) => {
        event.preventDefault();
        setOver(false);
        add([...(event.dataTransfer?.files ?? [])]);
    };
    /** @param {TargetedDragEvent<HTMLFormElement>} event */
    const dragOver = (event) => {
        event.preventDefault();
        setOver(true);
    };
    return html`<form class=${`composer ${over ? "composer-over" : ""}`} onSubmit=${send} onDrop=${drop}
        onDragOver=${dragOver} onDragLeave=${() => setOver(false)}>
        ${problem && html`<${Notice} tone="warn" text=${problem} />`}
        <div class="composer-box">
            ${
                attached.length > 0 &&
                html`<div class="files">${attached.map(
                    (one, index) => html`
                <${Attached} key=${index} file=${shownFile(one)}
                    onRemove=${() => setAttached(attached.filter((other) => other !== one))} />`,
                )}</div>`
            }
            <label class="unseen" for="question">Your question</label>
            <textarea id="question" ref=${field} rows="1" placeholder="Ask something" value=${text} enterkeyhint="enter"
                onInput=${onValue(setText)} onKeyDown=${keys} onPaste=${paste} />
            <div class="composer-row">
                <${FileChoice} onFiles=${add} />
                <${AgentChoice} />
                ${
                    thread.busy
                        ? html`<button class="send" type="button" aria-label="Stop" title="Stop" onClick=${() => thread.stop()}><${Icon} name="stop" /></button>`
                        : html`<button class="send" type="submit" aria-label="Send" title="Send" disabled=${!ready}><${Icon} name="arrow" /></button>`
                }
            </div>
        </div>
    </form>`;
}

/** @param {{ onFiles: (files: File[]) => void }} props */
function FileChoice({ onFiles }) {
    const input = useRef(/** @type {HTMLInputElement | null} */ (null));
    /** @param {TargetedEvent<HTMLInputElement>} event */
    const choose = (event) => {
        onFiles([...(event.currentTarget.files ?? [])]);
        event.currentTarget.value = "";
    };
    return html`<button class="icon-button" type="button" title="Attach an image or a file" aria-label="Attach an image or a file"
            onClick=${() => input.current?.click()}><${Icon} name="attach" /></button>
        <input ref=${input} class="unseen" type="file" multiple tabindex="-1" aria-label="Files to attach" onChange=${choose} />`;
}

function AgentChoice() {
    const names = (agents.value ?? []).map((one) => one.id);
    if (names.length < 2) return html`<span class="agent-name">${names[0] ?? "No agent"}</span>`;
    return html`<label class="agent-choice"><span class="unseen">Agent</span>
        <select value=${agent.value} onChange=${onValue(chooseAgent)}>
            ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select></label>`;
}

/**
 * @param {AttachedFile} file
 * @returns {ShownFile}
 */
function shownFile({ name, kind, part }) {
    return { name, kind, url: kind === "image" ? String(part.image_url) : undefined };
}

/** @param {HTMLTextAreaElement | null} area */
function fit(area) {
    if (!area) return; // the view was left before its first frame
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, MOST_HEIGHT)}px`;
}
