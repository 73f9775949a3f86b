// A component that is drawn again only where what it shows has changed.
import { Component } from "preact";

/** @import { ComponentChild } from "preact" */

/**
 * @template {{}} Props
 * @param {(props: Props) => ComponentChild} draw
 * @param {(before: Readonly<Props>, after: Readonly<Props>) => boolean} same
 */
export function memo(draw, same) {
    return class extends /** @type {typeof Component<Props>} */ (Component) {
        /**
         * @override
         * @param {Readonly<Props>} next
         */
        shouldComponentUpdate(next) {
            return !same(this.props, next);
        }

        /**
         * @override
         * @param {Props} props
         */
        render(props) {
            return draw(props);
        }
    };
}
