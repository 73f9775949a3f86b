// Runs before the page is drawn: a theme that was chosen must not flash in the other one.
try {
    const chosen = localStorage.getItem("beckon.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
    // A browser without storage for this page follows the system.
}
