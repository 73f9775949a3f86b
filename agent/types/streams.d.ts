// The events of the agent's streams, which the OpenAPI description leaves out, as far as the page reads them.
import type {
    ItemPage,
    LiveCallDocument,
    ProblemDocument,
    ProgressDocument,
    ReplayDocument,
    ResponseDocument,
    ToolResult,
} from "./api.d.ts";

/** An item of a response's output, or of a conversation. */
export type Item = ResponseDocument["output"][number] | ItemPage["data"][number];

/** An event of a response's stream. */
export type ResponseEvent = { sequence_number: number } & (
    | {
          type:
              | "response.created"
              | "response.queued"
              | "response.in_progress"
              | "response.completed"
              | "response.incomplete"
              | "response.failed";
          response: ResponseDocument;
      }
    | { type: "response.output_item.added" | "response.output_item.done"; output_index: number; item: Item }
    | {
          type: "response.output_text.delta" | "response.refusal.delta" | "response.reasoning_text.delta";
          output_index: number;
          delta: string;
      }
    | { type: "response.mcp_call_arguments.done"; output_index: number; arguments: string }
    | ({ type: "beckon:mcp_call.progress"; output_index: number } & ProgressDocument)
    | { type: "error"; code: string; message: string }
);

/** An event of a run's stream. */
export type RunEvent =
    | { type: "text" | "refusal" | "reasoning"; text: string }
    | {
          type:
              | "call"
              | "approval"
              | "client_call"
              | "progress"
              | "result"
              | "turn"
              | "dropped"
              | "suspended"
              | "taken_over"
              | "finished"
              | "failed"
              | "ended";
      };

/** The events of a stream, by the path of its request. */
export type StreamEvent<Path extends string> = Path extends `runs/${string}/replay`
    ? ReplayDocument | LiveCallDocument | ProblemDocument
    : Path extends `runs/${string}/events`
      ? RunEvent
      : Path extends `v1/responses${string}`
        ? ResponseEvent
        : never;

/** The data of an event in the answer to a call by hand. */
export type CallEvent = ProgressDocument | ToolResult | ProblemDocument;
