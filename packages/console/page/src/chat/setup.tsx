// The chat page: what it needs of its host, and its registration there (siblings 15.2, 15.3).
import type { Host } from "../host/host";
import type { Settings } from "../host/settings";
import { ChatContext } from "./context";
import { Models } from "./model/models";
import { Sessions } from "./model/sessions";
import { ChatPage } from "./view/page";

export function setup(host: Host, settings: Settings): () => void {
  const chat = {
    bus: host.iii,
    basePolicy: settings.chat_policy,
    sessions: new Sessions(host.iii),
    models: new Models(host.iii),
  };
  chat.sessions.open();
  chat.models.open();
  return host.pages.register({
    id: "chat",
    title: "Chat",
    render: () => (
      <ChatContext value={chat}>
        <ChatPage />
      </ChatContext>
    ),
  });
}
