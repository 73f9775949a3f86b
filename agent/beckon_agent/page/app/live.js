// What a screen reader announces: the text of one polite live region for the whole page.
import { signal } from "@preact/signals";

export const announcement = signal("");

/** @param {string} text */
export function announceText(text) {
    // The same words twice are not read twice, unless they differ.
    announcement.value = announcement.value === text ? `${text}\u00a0` : text;
}
