// What the page host tells the page from the start: it stands in the shell as JSON.

export interface FunctionPolicy {
  allow: string[];
  deny: string[];
  expose: "agent_trigger" | "native";
}

export interface Settings {
  chat_policy: FunctionPolicy;
}

export function readSettings(): Settings {
  return JSON.parse(document.getElementById("settings")?.textContent ?? "") as Settings;
}
