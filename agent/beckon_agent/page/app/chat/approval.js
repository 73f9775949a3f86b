// The approval of a call: the request, and the two decisions.
import { html } from "../html.js";
import { Members } from "../parts/data.js";
import { Icon } from "../parts/icons.js";
import { parsed } from "../parts/json.js";
import { href } from "../route.js";
import { originInWords } from "./call.js";

/** @import { ApprovalRequestItem } from "beckon-api" */
/** @typedef {{ item: ApprovalRequestItem, run: string, decided?: boolean, over: boolean }} Request */

/**
 * `decided` is true, false, or undefined while it is not decided here; `over` is whether the run went on.
 * @param {Request & { onDecide: (approve: boolean) => void }} props
 */
export function ApprovalCard({ item, run, decided, over, onDecide }) {
    const open = decided === undefined && !over;
    return html`<section class=${`approval ${open ? "approval-open" : ""}`} aria-label=${`Approval of ${item.name}`}>
        <div class="approval-head">
            <${Icon} name=${open ? "warning" : decided === false ? "close" : "check"} size="18" />
            <p><strong>${item.name}</strong> ${open ? "needs your approval." : describeDecision(decided)}</p>
        </div>
        ${
            open &&
            html`
            ${originInWords(item["beckon:origin"]) && html`<p class="hint">${originInWords(item["beckon:origin"])}</p>`}
            <${Members} value=${parsed(item.arguments)} label=${`Arguments of ${item.name}`} />
            <div class="approval-deeds">
                <button class="button button-strong" type="button" onClick=${() => onDecide(true)}>Approve</button>
                <button class="button" type="button" onClick=${() => onDecide(false)}>Deny</button>
                <a href=${href("runs", run)}>Events of this run</a>
            </div>`
        }
    </section>`;
}

/** @param {boolean | undefined} decided */
function describeDecision(decided) {
    if (decided === undefined) return "waited for approval.";
    return decided ? "was approved." : "was denied.";
}
