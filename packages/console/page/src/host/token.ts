// The secret of a stack that wants one: kept for this tab, sent with the connection, never anywhere else.

const KEY = "iii:token";

let token = read();

export function busUrl(): string {
  const url = new URL("/ws", location.href);
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  if (token !== "") url.searchParams.set("token", token);
  return url.href;
}

export function setToken(given: string): void {
  token = given.trim();
  try {
    sessionStorage.setItem(KEY, token);
  } catch {
    // It then lasts until the tab is loaded again.
  }
}

function read(): string {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}
