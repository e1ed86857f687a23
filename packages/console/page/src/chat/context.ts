// What every part of the chat page works with.
import { createContext, useContext } from "react";
import type { HostBus } from "../host/host";
import type { FunctionPolicy } from "../host/settings";
import type { Models } from "./model/models";
import type { Sessions } from "./model/sessions";

export interface Chat {
  readonly bus: HostBus;
  readonly basePolicy: FunctionPolicy;
  readonly sessions: Sessions;
  readonly models: Models;
}

export const ChatContext = createContext<Chat | null>(null);

export function useChat(): Chat {
  const chat = useContext(ChatContext);
  if (chat === null) throw new Error("this component belongs inside the chat page");
  return chat;
}
