// The answers of the API, as the page reads them. `make docs` makes this file from the OpenAPI description.

/** An answer to an input request. */
export type AnsweredInput = {
    id: string;
    object: "input_request";
    run: string;
    action: string;
};

/** The approval request for a call. */
export type ApprovalRequestItem = {
    "beckon:origin"?: "api" | "dialect" | "recovered";
    id: string;
    type: "mcp_approval_request" | "beckon:approval_request";
    status: "completed";
    server_label: string;
    name: string;
    arguments: string;
};

/** The approval of a call, decided or not. */
export type ApprovalState = {
    id: string;
    decision: "approved" | "denied" | null;
    by: string | null;
    reason: string | null;
    decided_at: number | null;
};

/** The cached part of the input. */
export type CachedTokens = {
    cached_tokens: number;
    cache_write_tokens: number;
};

/** An EventType with its conditions. */
export type CatalogueEntry = {
    id: string;
    name: string;
    namespace: string;
    event_type: string;
    type: string;
    description: string;
    state: "ready" | "refused" | "skipped";
    conditions: Array<Condition>;
};

/** EventTypes, and how many of each state there are that the words find. */
export type CataloguePage = {
    object: "list";
    first_id: string;
    last_id: string;
    has_more: boolean;
    data: Array<CatalogueEntry>;
    counts: StateCounts;
};

/** One condition, without its time: `reason` is one CamelCase word. */
export type Condition = {
    type: string;
    status: "True" | "False" | "Unknown";
    reason: string;
    message: string;
};

/** A conversation, without its items. */
export type ConversationDocument = {
    id: string;
    object: "conversation";
    created_at: number;
    metadata: { [name: string]: string };
};

/** The conversation of a response. */
export type ConversationId = {
    id: string;
};

/** A decision on a call. */
export type DecidedApproval = {
    id: string;
    object: "approval";
    run: string;
    decision: "approved" | "denied";
};

/** The answer to the deletion of a conversation. */
export type DeletedConversation = {
    id: string;
    object: "conversation.deleted";
    deleted: boolean;
};

/** One difference: its path, of names and indexes, and a unified diff. */
export type Difference = {
    where: string;
    diff: string;
};

/** OpenAI's error answer. */
export type ErrorDocument = {
    error: ErrorFields;
};

/** The members of OpenAI's error object. */
export type ErrorFields = {
    message: string;
    type: "invalid_request_error" | "rate_limit_error" | "server_error" | "insufficient_quota";
    param: string | null;
    code: string | null;
};

/** The events of a call; the `omitted` members count bytes of data too large to store. */
export type ExchangedEvents = {
    id: string;
    name: string;
    call: { [name: string]: unknown } | null;
    call_omitted: number;
    reply: { [name: string]: unknown } | null;
    reply_omitted: number;
    problem: unknown;
};

/** One page of a list, in OpenAI's shape. */
export type ExchangedEventsPage = {
    object: "list";
    first_id: string;
    last_id: string;
    has_more: boolean;
    data: Array<ExchangedEvents>;
};

/** An EventType with the route of its calls; `tool` is what a model sees of it. */
export type ExplainedEventType = {
    id: string;
    name: string;
    namespace: string;
    event_type: string;
    type: string;
    description: string;
    state: "ready" | "refused" | "skipped";
    conditions: Array<Condition>;
    origin: string;
    route: Array<Station>;
    findings: Array<Finding>;
    tool: ToolDocument | null;
};

/** An error or a warning about an object. An `error` keeps the object from its work, a `warning` is a likely surprise later. `field` is the path of the field to change, `message` says what is wrong and what to write. A document that cannot be read has no kind and no name. */
export type Finding = {
    origin: string;
    namespace: string;
    kind: string;
    name: string;
    severity: "error" | "warning";
    field: string;
    message: string;
};

/** A call of a client tool, answered by the client. */
export type FunctionCallItem = {
    id: string;
    type: "function_call";
    status: "in_progress" | "completed" | "incomplete";
    call_id: string;
    name: string;
    arguments: string;
};

/** The client's answer to a call. */
export type FunctionCallOutputItem = {
    id: string;
    type: "function_call_output";
    status: "completed";
    call_id: string;
    output: string;
};

/** The limit that ended a response; `ending` is set for an answer that broke off. */
export type IncompleteDetails = {
    reason: "max_output_tokens" | "content_filter" | "max_messages";
    ending?: "incomplete";
};

/** A message to the model. */
export type InputMessageItem = {
    id: string;
    type: "message";
    status: "completed";
    role: "user" | "system" | "developer";
    content: Array<{ [name: string]: unknown }>;
};

/** The input that a tool has requested last; `id` is `None` once it has its answer, the `action`. */
export type InputState = {
    id: string | null;
    message: string;
    schema: { [name: string]: unknown };
    action: string | null;
};

/** One page of items. */
export type ItemPage = {
    object: "list";
    first_id: string;
    last_id: string;
    has_more: boolean;
    data: Array<InputMessageItem | MessageItem | ReasoningItem | FunctionCallItem | FunctionCallOutputItem | McpCallItem>;
};

/** A conversation in a list, with its first question as title. */
export type ListedConversation = {
    id: string;
    object: "conversation";
    created_at: number;
    metadata: { [name: string]: string };
    used_at: number;
    title: string;
};

/** One page of a list, in OpenAI's shape. */
export type ListedConversationPage = {
    object: "list";
    first_id: string;
    last_id: string;
    has_more: boolean;
    data: Array<ListedConversation>;
};

/** The number of calls that were made for real, and of those with the same result. */
export type LiveCallCounts = {
    same: number;
    all: number;
};

/** A call that was made for real, with its recorded and its current result. */
export type LiveCallDocument = {
    id: string;
    name: string;
    arguments: { [name: string]: unknown };
    called: boolean;
    same: boolean;
    recorded: unknown;
    now: unknown;
    diff: string;
};

/** The error object of a failed call. */
export type McpCallError = {
    type: "mcp_tool_execution_error";
    content: unknown;
};

/** A call of a cluster tool, made by the agent. */
export type McpCallItem = {
    "beckon:origin"?: "api" | "dialect" | "recovered";
    id: string;
    type: "mcp_call" | "beckon:tool_call";
    status: "in_progress" | "completed" | "incomplete" | "failed";
    server_label: string;
    name: string;
    arguments: string;
    approval_request_id: string | null;
    output: string | null;
    error: McpCallError | null;
};

/** A message of the model. */
export type MessageItem = {
    id: string;
    type: "message";
    status: "in_progress" | "completed" | "incomplete";
    role: "assistant";
    content: Array<OutputText | RefusalContent>;
};

/** An agent as a model of OpenAI's. */
export type ModelDocument = {
    id: string;
    object: "model";
    created: number;
    owned_by: string;
};

/** All agents. */
export type ModelList = {
    object: "list";
    data: Array<ModelDocument>;
};

/** The content part of a message. */
export type OutputText = {
    type: "output_text";
    text: string;
    annotations: Array<UrlCitation>;
    logprobs: Array<TokenLogprob>;
};

/** A problem document (RFC 9457); it may have more members. */
export type ProblemDocument = {
    type: string;
    title: string;
    status: number;
    detail: string;
};

/** A tool's progress report. */
export type ProgressDocument = {
    progress: number;
    total: number | null;
    message: string;
};

/** Reasoning of the model. */
export type ReasoningItem = {
    id: string;
    type: "reasoning";
    status: "in_progress" | "completed" | "incomplete";
    summary: Array<unknown>;
    content: Array<ReasoningText>;
};

/** The content part of a reasoning item. */
export type ReasoningText = {
    type: "reasoning_text";
    text: string;
};

/** The reasoning part of the output. */
export type ReasoningTokens = {
    reasoning_tokens: number;
};

/** An EventType meant to be a tool, but refused. `reason` is one CamelCase word for a condition, `field` the path to change, `message` what is wrong and what to write instead. A manifest that could not be read has no `event_type`. */
export type Refusal = {
    event_type: string;
    namespace: string;
    reason: string;
    field: string;
    message: string;
    origin: string;
};

/** The content part of a message with which the model refuses. */
export type RefusalContent = {
    type: "refusal";
    refusal: string;
};

/** The outcome of a replay. */
export type ReplayDocument = {
    run: string;
    agent: string;
    model: string | null;
    status: "queued" | "running" | "suspended" | "completed" | "incomplete" | "failed" | "cancelled";
    same: boolean;
    live_tools: boolean;
    turns: number;
    calls: number;
    events: number;
    answers_dropped: number;
    requests_unknown: number;
    log_is_whole: boolean;
    live_calls: LiveCallCounts;
    differences: Array<Difference>;
};

/** How to play a run. */
export type ReplayRequest = {
    live_tools?: boolean;
    effects?: boolean;
};

/** A response of Open Responses. */
export type ResponseDocument = {
    instructions: string | null;
    metadata: { [name: string]: string };
    previous_response_id: string | null;
    temperature: number;
    top_p: number;
    presence_penalty: number;
    frequency_penalty: number;
    top_logprobs: number;
    max_output_tokens: number | null;
    max_tool_calls: number | null;
    parallel_tool_calls: boolean;
    tool_choice: string | { [name: string]: unknown };
    tools: Array<{ [name: string]: unknown }>;
    text: ResponseText;
    reasoning: ResponseReasoning;
    truncation: "auto" | "disabled";
    service_tier: string;
    user: string | null;
    safety_identifier: string | null;
    prompt_cache_key: string | null;
    id: string;
    object: "response";
    created_at: number;
    status: "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";
    completed_at: number | null;
    error: ResponseError | null;
    incomplete_details: IncompleteDetails | null;
    model: string;
    output: Array<MessageItem | ReasoningItem | FunctionCallItem | McpCallItem | ApprovalRequestItem>;
    usage: ResponseUsage | null;
    background: boolean;
    store: boolean;
    conversation: ConversationId | null;
};

/** The failure of a response. */
export type ResponseError = {
    code: "invalid_prompt" | "rate_limit_exceeded" | "server_error";
    message: string;
};

/** The request's options for the model's reasoning. */
export type ResponseReasoning = {
    effort: string | null;
    summary: string | null;
};

/** The request's options for the text of the answer. */
export type ResponseText = {
    format: { [name: string]: unknown };
    verbosity?: "low" | "medium" | "high";
};

/** The tokens used by a response. */
export type ResponseUsage = {
    input_tokens: number;
    input_tokens_details: CachedTokens;
    output_tokens: number;
    output_tokens_details: ReasoningTokens;
    total_tokens: number;
};

/** A call with its state, times and outcome. */
export type RunCall = {
    event_id: string;
    id: string;
    name: string;
    origin: "api" | "dialect" | "recovered";
    arguments: unknown;
    state: "open" | "approval" | "sent" | "accepted" | "input" | "client" | "done";
    requested_at: number | null;
    sent_at: number | null;
    finished_at: number | null;
    seconds: number | null;
    attempts: number;
    deliveries: number | null;
    deadline: number | null;
    report: unknown;
    failed: boolean;
    result: unknown;
    cut: boolean;
    reason: unknown;
    dead_letter: string | null;
    approval: ApprovalState | null;
    input: InputState | null;
};

/** A run with its steps. */
export type RunDocument = {
    id: string;
    object: "run";
    agent: string;
    face: string;
    status: "queued" | "running" | "suspended" | "completed" | "incomplete" | "failed" | "cancelled";
    ending: "stop" | "length" | "step_limit" | "time_limit" | "token_limit" | "content_filter" | "client_call" | "incomplete" | null;
    error: RunError | null;
    created_at: number;
    ended_at: number | null;
    background: boolean;
    conversation: string | null;
    previous: string | null;
    takeovers: number;
    taken_over_at: number | null;
    question: string;
    usage: RunUsage | null;
    steps: Array<RunStep>;
};

/** The failure of a run; `code` is for programs. */
export type RunError = {
    code: string;
    message: string;
};

/** A run in a list. */
export type RunListItem = {
    id: string;
    object: "run";
    agent: string;
    face: string;
    status: "queued" | "running" | "suspended" | "completed" | "incomplete" | "failed" | "cancelled";
    ending: "stop" | "length" | "step_limit" | "time_limit" | "token_limit" | "content_filter" | "client_call" | "incomplete" | null;
    error: RunError | null;
    created_at: number;
    ended_at: number | null;
    background: boolean;
    conversation: string | null;
    previous: string | null;
    takeovers: number;
    taken_over_at: number | null;
    question: string;
    usage: RunUsage | null;
    tools: Array<ToolCount>;
    calls_failed: number;
    approvals_waiting: number;
    inputs_waiting: number;
};

/** One page of a list, in OpenAI's shape. */
export type RunListItemPage = {
    object: "list";
    first_id: string;
    last_id: string;
    has_more: boolean;
    data: Array<RunListItem>;
};

/** An answer of the model, and its calls. */
export type RunStep = {
    step: number;
    model: unknown;
    text: string;
    reasoning: string;
    cut: boolean;
    finish_reason: string | null;
    usage: RunUsage | null;
    seconds: number | null;
    ended_at: number | null;
    tools_sent: Array<string>;
    calls: Array<RunCall>;
};

/** The tokens used by a run or a step. */
export type RunUsage = {
    input_tokens: number;
    output_tokens: number;
    total_tokens: number;
};

/** An EventType without a tool, by choice or by rule. This is no mistake. */
export type Skipped = {
    event_type: string;
    namespace: string;
    reason: string;
    message: string;
    origin: string;
};

/** The number of EventTypes in each state. */
export type StateCounts = {
    ready: number;
    refused: number;
    skipped: number;
};

/** One object on the route of a call. `detail` says what it does there, or what is wrong; `note` how it delivers. */
export type Station = {
    kind: "EventType" | "Broker" | "Trigger" | "Service" | "Reply";
    name: string;
    state: "ok" | "broken" | "unknown";
    detail: string;
    note: string;
};

/** A token of the text with its log probability, and those of other tokens at its place. */
export type TokenLogprob = {
    token: string;
    logprob: number;
    bytes: Array<number>;
    top_logprobs: Array<TopLogprob>;
};

/** The number of calls of one tool. */
export type ToolCount = {
    name: string;
    calls: number;
};

/** A tool: what is sent to a model, and what decides how it is called. */
export type ToolDocument = {
    name: string;
    description: string;
    parameters: { [name: string]: unknown };
    returns: { [name: string]: unknown } | null;
    declaration: { [name: string]: unknown };
    event_type: string;
    namespace: string;
    type: string;
    broker: string;
    triggers: Array<string>;
    parameters_from: string;
    requires_approval: boolean;
    read_only: boolean;
    destructive: boolean | null;
    idempotent: boolean;
};

/** The tools of an agent, and the EventTypes without a tool. */
export type ToolList = {
    tools: Array<ToolDocument>;
    refused: Array<Refusal>;
    skipped: Array<Skipped>;
};

/** The result of a call, as its tool gave it. */
export type ToolResult = {
    result: unknown;
    seconds: number;
};

/** A token with its log probability. */
export type TopLogprob = {
    token: string;
    logprob: number;
    bytes: Array<number>;
};

/** A source of the text, by its address. */
export type UrlCitation = {
    type: "url_citation";
    url: string;
    title: string;
    start_index: number;
    end_index: number;
};

/** A call whose tool waits for input of a person. `schema` is a JSON Schema of one flat object. */
export type WaitingInput = {
    id: string;
    object: "input_request";
    run: string;
    agent: string;
    question: string;
    name: string;
    message: string;
    schema: { [name: string]: unknown };
};

/** One page of a list, in OpenAI's shape. */
export type WaitingInputPage = {
    object: "list";
    first_id: string;
    last_id: string;
    has_more: boolean;
    data: Array<WaitingInput>;
};

/** The answer to a request with GET, by its path. */
export type GetAnswer<Path extends string> =
    Path extends `v1/conversations/${string}/items` ? ItemPage :
    Path extends `v1/responses/${string}/input_items` ? ItemPage :
    Path extends `catalogue/${string}/${string}` ? ExplainedEventType :
    Path extends `runs/${string}/events` ? ExchangedEventsPage :
    Path extends `v1/conversations/${string}` ? ConversationDocument :
    Path extends `v1/responses/${string}` ? ResponseDocument :
    Path extends `runs/${string}` ? RunDocument :
    Path extends `v1/conversations` ? ListedConversationPage :
    Path extends `v1/models` ? ModelList :
    Path extends `catalogue` ? CataloguePage :
    Path extends `inputs` ? WaitingInputPage :
    Path extends `runs` ? RunListItemPage :
    Path extends `tools` ? ToolList :
    never;

/** The answer to a request with POST, by its path. */
export type PostAnswer<Path extends string> =
    Path extends `v1/conversations/${string}/items` ? ItemPage :
    Path extends `v1/responses/${string}/cancel` ? ResponseDocument :
    Path extends `approvals/${string}` ? DecidedApproval :
    Path extends `inputs/${string}` ? AnsweredInput :
    Path extends `tools/${string}` ? ToolResult :
    Path extends `v1/conversations` ? ConversationDocument :
    Path extends `v1/responses` ? ResponseDocument :
    never;

/** The answer to a request with DELETE, by its path. */
export type DeleteAnswer<Path extends string> =
    Path extends `v1/conversations/${string}` ? DeletedConversation :
    never;
