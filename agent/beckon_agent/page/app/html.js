// All markup is written like this: html`<p class=${x}>…</p>`, drawn by Preact.
import htm from "htm";
import { h } from "preact";

/** @import { TargetedEvent } from "preact" */

export const html = htm.bind(h);

/**
 * Returns a handler that takes the value of its field.
 *
 * @param {(value: string) => void} take
 * @returns {(event: TargetedEvent<HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement>) => void}
 */
export const onValue = (take) => (event) => take(event.currentTarget.value);

/**
 * The handler of a form that is sent by its fields alone.
 *
 * @param {Event} event
 */
export const stay = (event) => event.preventDefault();
