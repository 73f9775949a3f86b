// Light or dark: as the system says, until the user chooses.
import { computed, signal } from "@preact/signals";

const STORAGE_KEY = "beckon.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(system.matches);
system.addEventListener("change", () => {
    systemIsDark.value = system.matches;
});

const chosen = signal(document.documentElement.dataset.theme ?? "");

export const dark = computed(() => (chosen.value ? chosen.value === "dark" : systemIsDark.value));

export function toggleTheme() {
    const wanted = dark.value ? "light" : "dark";
    const followsSystem = (wanted === "dark") === systemIsDark.value;
    chosen.value = followsSystem ? "" : wanted;
    if (followsSystem) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = wanted;
    try {
        if (followsSystem) localStorage.removeItem(STORAGE_KEY);
        else localStorage.setItem(STORAGE_KEY, wanted);
    } catch {
        // The choice lasts until the page is closed.
    }
}
