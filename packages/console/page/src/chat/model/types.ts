// The wire shapes that the chat reads (siblings 2, 3; harness-loop 3.2, 11.2).

export interface TextBlock {
  type: "text";
  text: string;
}

export interface ThinkingBlock {
  type: "thinking";
  text: string;
}

export interface CallBlock {
  type: "function_call";
  id: string;
  function_id: string;
  arguments: unknown;
}

export interface ImageBlock {
  type: "image";
  mime: string;
  data: string;
}

export interface FileBlock {
  type: "file";
  name: string;
  mime: string;
  size: number;
}

export interface OtherBlock {
  type: "redacted_thinking" | "function_result";
}

export type Block = TextBlock | ThinkingBlock | CallBlock | ImageBlock | FileBlock | OtherBlock;

export interface Message {
  role: "user" | "assistant" | "function_result" | "custom";
  content: Block[];
  timestamp: number;
  model?: string;
  provider?: string;
  stop_reason?: string;
  error_message?: string;
  warnings?: string[];
  usage?: Usage;
  function_call_id?: string;
  function_id?: string;
  details?: unknown;
  is_error?: boolean;
  display?: string;
}

export interface Usage {
  input?: number;
  output?: number;
  cost_usd?: number;
}

export interface Custom {
  custom_type: string;
  data: unknown;
}

export interface TranscriptItem {
  entry_id: string;
  message?: Message;
  custom?: Custom;
  origin?: unknown;
  elided?: boolean;
}

export interface TailPage {
  messages: TranscriptItem[];
  has_more: boolean;
  oldest_entry_id?: string;
}

export interface AddedEvent {
  session_id: string;
  entry_id: string;
  parent_id: string | null;
  message?: Message;
  custom?: Custom;
  origin?: unknown;
}

export interface UpdatedEvent {
  session_id: string;
  entry_id: string;
  message: Message;
  revision: number;
}

export interface SessionMeta {
  session_id: string;
  title: string;
  status: "idle" | "working" | "done" | "error";
  status_reason?: string;
  metadata?: Record<string, unknown>;
  created_at: number;
  updated_at: number;
  message_count: number;
}

export interface QueuedMessage {
  entry_id: string;
  message: Message;
  queued_at: number;
}

export interface StatusReport {
  turn_id: string;
  status: "running" | "awaiting_functions" | "completed" | "cancelled" | "failed";
  pending_function_calls: string[];
  stop_reason?: string;
  queued?: QueuedMessage[];
}

export interface Model {
  id: string;
  provider: string;
  display_name?: string;
}

export interface Provider {
  id: string;
  display_name: string;
  configured: boolean;
}

export function textOfMessage(message: Message): string {
  return message.content
    .filter((block): block is TextBlock => block.type === "text")
    .map((block) => block.text)
    .join("\n");
}

export function isLive(turn: StatusReport | null): boolean {
  return turn !== null && (turn.status === "running" || turn.status === "awaiting_functions");
}
