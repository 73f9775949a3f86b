// The one way to write markup here: html`<p class=${x}>…</p>`, drawn by Preact.
import htm from "htm";
import { h } from "preact";

export const html = htm.bind(h);
