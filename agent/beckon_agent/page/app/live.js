// What a screen reader is told while the eye sees it happen: one polite region for the whole page.
import { signal } from "@preact/signals";

export const said = signal("");

export function announce(text) {
    // The same words twice are not read twice, unless they differ.
    said.value = said.value === text ? `${text}\u00a0` : text;
}
