// Runs before the page is drawn: a script or a style that does not arrive leaves the page empty or bare. That happens
// when the network of this machine changes meanwhile, as it does with each container that starts. So the page is
// loaded again once; if that fails, too, it says so.
{
    const STORAGE_KEY = "beckon.loaded-again";
    const PAUSE_MS = 10_000;

    /** Notes a failure; returns whether it is the second in a row, and true where nothing can be stored. */
    function noteFailure() {
        try {
            const last = Number(sessionStorage.getItem(STORAGE_KEY) ?? 0);
            sessionStorage.setItem(STORAGE_KEY, String(Date.now()));
            return Date.now() - last < PAUSE_MS;
        } catch {
            return true;
        }
    }

    /**
     * The address of a script or a style; empty for all else, such as the favicon.
     * @param {EventTarget | null} target
     */
    function addressOf(target) {
        if (target instanceof HTMLScriptElement) return target.src;
        return target instanceof HTMLLinkElement && target.rel === "stylesheet" ? target.href : "";
    }

    function report() {
        const message = document.createElement("p");
        const again = document.createElement("a");
        message.className = "bare-message";
        message.role = "alert";
        again.href = location.href;
        again.textContent = "Load it again";
        again.addEventListener("click", () => location.reload());
        message.append("A part of this page did not arrive. Is the agent running? ", again);
        document.body.replaceChildren(message);
    }

    addEventListener(
        "error",
        ({ target }) => {
            // What an extension of the browser puts into the page is no part of it.
            if (!addressOf(target).startsWith(`${location.origin}/`)) return;
            const isSecond = noteFailure();
            if (!isSecond) location.reload();
            else if (document.body) report();
            else addEventListener("DOMContentLoaded", report);
        },
        true,
    );
}
